//! Lists of one.

/// A list that nearly always has one item at most, which then takes no memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Few<T> {
    /// `None` if there is none at all.
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> Few<T> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// Returns the only item, if there is one.
    pub(crate) fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.more.last().or(self.first.as_ref())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }

    pub(crate) fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.more.push(item),
        }
    }

    pub(crate) fn push_front(&mut self, item: T) {
        if let Some(second) = self.first.replace(item) {
            self.more.insert(0, second);
        }
    }

    /// Returns the item at a place, counted in the order they were pushed in.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        match at.checked_sub(1) {
            None => self.first.as_ref(),
            Some(at) => self.more.get(at),
        }
    }

    /// Takes out the item at a place, which the last one gets.
    pub(crate) fn swap_remove(&mut self, at: usize) -> Option<T> {
        match at.checked_sub(1) {
            None => std::mem::replace(&mut self.first, self.more.pop()),
            Some(at) if at < self.more.len() => Some(self.more.swap_remove(at)),
            Some(_) => None,
        }
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.more.retain(&mut stays);
        if self.first.as_ref().is_some_and(|first| !stays(first)) {
            self.first = if self.more.is_empty() { None } else { Some(self.more.remove(0)) };
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_a_vector_is() {
        for count in 0..4 {
            for gone in 0..1 << count {
                let (mut few, mut all) = (Few::default(), Vec::new());
                for item in 0..count {
                    few.push(item);
                    all.push(item);
                }
                few.retain(|item| gone >> item & 1 == 0);
                all.retain(|item| gone >> item & 1 == 0);
                assert_eq!(few.iter().copied().collect::<Vec<_>>(), all);
                assert_eq!((few.is_empty(), few.last()), (all.is_empty(), all.last()));
                assert_eq!(few.only().is_some(), all.len() == 1);
                few.push_front(9);
                all.insert(0, 9);
                for at in [count, 1, 0, 0] {
                    assert_eq!(few.get(at), all.get(at));
                    let gone = (at < all.len()).then(|| all.swap_remove(at));
                    assert_eq!(few.swap_remove(at), gone);
                    assert_eq!(few.iter().copied().collect::<Vec<_>>(), all);
                }
                assert_eq!(few.into_iter().collect::<Vec<_>>(), all);
            }
        }
    }
}
