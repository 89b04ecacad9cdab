//! `/v1/partitions`: the partition map.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web::Data};
use holdfast_partitioner::{PartitionMap, Rule, Table};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::http::{
    api::Api,
    fields::GroupNumber,
    input::{NoArgs, QueryArgs},
    problem::Problem,
};

/// The partition map: where every name and every session lives.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartitionsAnswer {
    /// Raised by one for each change.
    epoch: u64,
    /// Rules by prefix; the longest prefix that a name begins with decides.
    rules: Vec<RuleJson>,
    /// The home group of the sessions of each home slot.
    home_slots: Vec<GroupNumber>,
}

impl From<PartitionMap> for PartitionsAnswer {
    fn from(map: PartitionMap) -> Self {
        let parts = map.into_parts();
        Self {
            epoch: parts.epoch.0,
            rules: parts.rules.into_iter().map(RuleJson::new).collect(),
            home_slots: parts.home_slots.into_iter().map(GroupNumber::from).collect(),
        }
    }
}

/// How the names below one prefix are spread over groups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RuleJson {
    /// Empty for the rule that catches everything else.
    prefix: String,
    /// Segments after the prefix that belong to the partition key.
    depth: u16,
    /// Which strategy computed the table, and with what settings.
    strategy: StrategyJson,
    table: TableJson,
}

impl RuleJson {
    fn new((prefix, rule): (String, Rule)) -> Self {
        Self {
            prefix,
            depth: rule.depth,
            strategy: StrategyJson { name: rule.strategy.name, params: rule.strategy.params },
            table: rule.table.into(),
        }
    }
}

/// A strategy and its settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StrategyJson {
    name: String,
    params: BTreeMap<String, String>,
}

/// Partition key to group.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TableJson {
    /// The owner of each hash slot.
    Slots(Vec<GroupNumber>),
    /// The owners of key intervals; each ends where the next starts.
    Splits(Vec<SplitJson>),
}

/// One key interval.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SplitJson {
    /// Its lowest key.
    from: String,
    group: GroupNumber,
}

impl From<Table> for TableJson {
    fn from(table: Table) -> Self {
        match table {
            Table::Slots(owners) => Self::Slots(owners.into_iter().map(GroupNumber::from).collect()),
            Table::Splits(splits) => {
                let split = |(from, group): (String, _)| SplitJson { from, group: GroupNumber::from(group) };
                Self::Splits(splits.into_iter().map(split).collect())
            }
        }
    }
}

/// Show the partition map
#[utoipa::path(get, path = "/v1/partitions", operation_id = "partitions", tag = "cluster",
    responses((status = 200, description = "The partition map.", body = PartitionsAnswer)))]
pub(crate) async fn show(api: Data<Api>, _: QueryArgs<NoArgs>) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(PartitionsAnswer::from(api.endpoint.partitions().await?)))
}
