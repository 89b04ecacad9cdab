//! Whether moments can be chosen for all boundaries at once: each within its bounds, none after its successor, and of some
//! pairs one late enough or the other early enough.
//!
//! Each condition has at most two such halves, so this is satisfiability with two literals per clause (2-SAT), which is decided
//! exactly: whatever is tried and leads to no contradiction by itself may be kept (Even, Itai, Shamir 1976). Knows nothing of
//! what the moments mean.

/// A pair of which one must hold: a boundary is not before some moment, or another is not after some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Either {
    /// The boundary that is late enough.
    pub(super) late: usize,
    /// Not before this moment.
    pub(super) not_before: u64,
    /// The boundary that is early enough.
    pub(super) early: usize,
    /// Not after this moment.
    pub(super) not_after: u64,
}

/// The earliest and the latest moment of each boundary, in order.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    earliest: Vec<u64>,
    latest: Vec<u64>,
}

impl Moments {
    /// Boundaries with these bounds.
    pub(super) fn new(bounds: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (earliest, latest) = bounds.into_iter().unzip();
        Self { earliest, latest }
    }

    /// Whether there are moments that fit everything; otherwise the number of a condition that cannot be met, or `None` where
    /// the bounds alone contradict each other.
    pub(super) fn fit(mut self, pairs: &[Either]) -> Result<(), Option<usize>> {
        self.line_up()?;
        // Bounds only get narrower, so that what is met stays so: of very many conditions few are open.
        let mut open: Vec<(usize, Either)> = pairs.iter().copied().enumerate().collect();
        self.settle(&mut open)?;
        while let Some((number, pair)) = open.pop() {
            let (mut late, mut rest) = (self.clone(), open.clone());
            late.earliest[pair.late] = late.earliest[pair.late].max(pair.not_before);
            if late.settle(&mut rest).is_ok() {
                (self, open) = (late, rest);
                continue;
            }
            self.latest[pair.early] = self.latest[pair.early].min(pair.not_after);
            self.settle(&mut open).map_err(|_| Some(number))?;
        }
        Ok(())
    }

    fn is_met(&self, pair: &Either) -> bool {
        self.earliest[pair.late] >= pair.not_before || self.latest[pair.early] <= pair.not_after
    }

    /// Draws all conclusions that need no choice. What is left open needs one.
    fn settle(&mut self, open: &mut Vec<(usize, Either)>) -> Result<(), Option<usize>> {
        loop {
            self.line_up()?;
            open.retain(|(_, pair)| !self.is_met(pair));
            let mut concluded = false;
            for (number, pair) in open.iter() {
                let may_be_late = self.latest[pair.late] >= pair.not_before;
                let may_be_early = self.earliest[pair.early] <= pair.not_after;
                match (may_be_late, may_be_early) {
                    (true, true) => continue,
                    (false, false) => return Err(Some(*number)),
                    (true, false) => self.earliest[pair.late] = pair.not_before.max(self.earliest[pair.late]),
                    (false, true) => self.latest[pair.early] = pair.not_after.min(self.latest[pair.early]),
                }
                concluded = true;
            }
            if !concluded {
                return Ok(());
            }
        }
    }

    /// None comes after its successor.
    fn line_up(&mut self) -> Result<(), Option<usize>> {
        for at in 1..self.earliest.len() {
            self.earliest[at] = self.earliest[at].max(self.earliest[at - 1]);
        }
        for at in (1..self.latest.len()).rev() {
            self.latest[at - 1] = self.latest[at - 1].min(self.latest[at]);
        }
        let fits = self.earliest.iter().zip(&self.latest).all(|(earliest, latest)| earliest <= latest);
        if fits { Ok(()) } else { Err(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(late: usize, not_before: u64, early: usize, not_after: u64) -> Either {
        Either { late, not_before, early, not_after }
    }

    /// All choices, tried one after the other.
    fn tried(bounds: &[(u64, u64)], pairs: &[Either]) -> bool {
        fn go(bounds: &[(u64, u64)], pairs: &[Either], chosen: &mut Vec<u64>) -> bool {
            let Some((earliest, latest)) = bounds.get(chosen.len()) else {
                return pairs
                    .iter()
                    .all(|p| chosen[p.late] >= p.not_before || chosen[p.early] <= p.not_after);
            };
            let first = chosen.last().map_or(*earliest, |last| (*last).max(*earliest));
            (first..=*latest).any(|moment| {
                chosen.push(moment);
                let found = go(bounds, pairs, chosen);
                chosen.pop();
                found
            })
        }
        go(bounds, pairs, &mut Vec::new())
    }

    #[test]
    fn any_two_can_be_met_and_all_together_cannot() {
        let bounds = [(0, 10), (2, 10)];
        let all = [pair(0, 6, 1, 3), pair(1, 11, 0, 5), pair(0, 4, 1, 1)];
        for without in 0..3 {
            let two: Vec<Either> = (0..3).filter(|at| *at != without).map(|at| all[at]).collect();
            assert_eq!(Moments::new(bounds).fit(&two), Ok(()));
        }
        assert!(Moments::new(bounds).fit(&all).is_err());
        assert!(!tried(&bounds, &all));
    }

    #[test]
    fn bounds_that_contradict_each_other_are_found() {
        assert_eq!(Moments::new([(5, 9), (0, 4)]).fit(&[]), Err(None));
        assert_eq!(Moments::new([(5, 9), (0, 5)]).fit(&[]), Ok(()));
    }

    #[test]
    fn it_decides_as_trying_all_choices_does() {
        // A small linear congruential generator: the same cases each time.
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut can, mut cannot) = (0, 0);
        for _ in 0..4_000 {
            let bounds: Vec<(u64, u64)> = (0..4).map(|_| (random(4), 3 + random(4))).collect();
            let pairs: Vec<Either> =
                (0..6).map(|_| pair(random(4) as usize, random(8), random(4) as usize, random(8))).collect();
            let fits = Moments::new(bounds.clone()).fit(&pairs).is_ok();
            assert_eq!(fits, tried(&bounds, &pairs), "{bounds:?} {pairs:?}");
            if fits { can += 1 } else { cannot += 1 }
        }
        assert!(can > 500 && cannot > 500, "{can} of one kind, {cannot} of the other");
    }
}
