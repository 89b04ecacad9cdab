//! Says the same thing only once, however often it happens.

use parking_lot::Mutex;

/// The last thing that was said.
#[derive(Debug, Default)]
pub(crate) struct LastTold(Mutex<Option<String>>);

impl LastTold {
    /// Whether this differs from what was said last; then it is what was said last.
    pub(crate) fn is_news(&self, text: &str) -> bool {
        let mut last = self.0.lock();
        let news = last.as_deref() != Some(text);
        if news {
            *last = Some(text.to_owned());
        }
        news
    }

    /// From now on everything is news.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_no_news() {
        let told = LastTold::default();
        assert!(told.is_news("a"));
        assert!(!told.is_news("a"));
        assert!(told.is_news("b"));
        assert!(told.is_news("a"));
        told.forget();
        assert!(told.is_news("a"));
    }
}
