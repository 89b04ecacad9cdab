//! Moves a snapshot's data to and from the store, packed, in chunks: no more than a few chunks are in memory beside the
//! state itself, and other tasks of the thread run in between.

use bytes::Bytes;
use futures::StreamExt as _;

use super::{CatalogError, DataFault};
use crate::snapshot::{
    compression::{CHUNK_BYTES, Content, Keep, Packer, Unpacker},
    manifest::{Manifest, PLAIN_FORMAT},
    store::{ObjectName, PutMode, SnapshotStore, StoreError, Upload},
};

/// Packs `data` into a new object.
pub(super) async fn upload(
    store: &dyn SnapshotStore,
    object: &ObjectName,
    data: &Bytes,
) -> Result<Content, CatalogError> {
    let mut upload = store.upload(object, PutMode::CreateOnly).await?;
    match pack_into(upload.as_mut(), object, data).await {
        Ok(packed) => {
            // The store may have taken it, and only its answer was lost: then trying again finds it there.
            if let Err(err) = upload.finish().await
                && !holds(store, object, &packed).await
            {
                return Err(err.into());
            }
            Ok(packed)
        }
        Err(err) => {
            upload.abort().await;
            Err(err)
        }
    }
}

/// Whether an object is there, and is what was packed.
async fn holds(store: &dyn SnapshotStore, object: &ObjectName, packed: &Content) -> bool {
    let Ok(mut chunks) = store.stream(object).await else { return false };
    let mut measured = Unpacker::plain(Keep::Nothing, packed.stored_bytes);
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return false };
        measured.take(&chunk);
        tokio::task::yield_now().await;
    }
    let (found, _nothing) = measured.finish();
    found.stored_bytes == packed.stored_bytes && found.sha256 == packed.sha256
}

async fn pack_into(
    upload: &mut dyn Upload,
    object: &ObjectName,
    data: &Bytes,
) -> Result<Content, CatalogError> {
    let failed = |err: std::io::Error| CatalogError::Pack { object: object.clone(), reason: err.to_string() };
    let mut packer = Packer::new().map_err(failed)?;
    for chunk in data.chunks(CHUNK_BYTES) {
        let packed = packer.pack(chunk).map_err(failed)?;
        if !packed.is_empty() {
            upload.write(packed).await?;
        }
        tokio::task::yield_now().await;
    }
    let (rest, content) = packer.finish().map_err(failed)?;
    upload.write(rest).await?;
    Ok(content)
}

/// Reads a snapshot's data and compares them with the manifest; gives them if they are to be kept.
pub(super) async fn read(
    store: &dyn SnapshotStore,
    manifest: &Manifest,
    keep: Keep,
) -> Result<Bytes, CatalogError> {
    let damaged =
        |fault| CatalogError::Damaged { group: manifest.group, snapshot: manifest.snapshot.clone(), fault };
    let content = |err: std::io::Error| damaged(DataFault::Content { reason: err.to_string() });
    let mut chunks = match store.stream(&manifest.data_object()?).await {
        Ok(chunks) => chunks,
        Err(StoreError::NotFound { .. }) => return Err(damaged(DataFault::Missing)),
        Err(err) => return Err(err.into()),
    };
    let mut unpacker = match manifest.format_version {
        PLAIN_FORMAT => Unpacker::plain(keep, manifest.size_bytes),
        _ => Unpacker::packed(keep, manifest.size_bytes).map_err(content)?,
    };
    while let Some(chunk) = chunks.next().await {
        unpacker.take(&chunk?);
        tokio::task::yield_now().await;
    }
    let (found, data) = unpacker.finish();
    compare(&found, manifest).map_err(damaged)?;
    let data = data.map_err(content)?;
    match found.size_bytes == manifest.size_bytes {
        true => Ok(data),
        false => Err(damaged(DataFault::Size { found: found.size_bytes, expected: manifest.size_bytes })),
    }
}

/// What stands in the store comes first: it says most.
fn compare(found: &Content, manifest: &Manifest) -> Result<(), DataFault> {
    if found.stored_bytes != manifest.stored_bytes {
        return Err(DataFault::Size { found: found.stored_bytes, expected: manifest.stored_bytes });
    }
    if found.sha256 != manifest.sha256 {
        let (found, expected) = (found.sha256.clone(), manifest.sha256.clone());
        return Err(DataFault::Checksum { found, expected });
    }
    Ok(())
}
