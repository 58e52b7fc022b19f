//! The wants of the taker, in the order in which they came; and, if it asked for everything, the files
//! without a want.
//!
//! The invariant: at most [`MAX_WANTS`] wants and [`MAX_WANTED_RANGES`] ranges in them are kept.

use std::collections::VecDeque;

use crate::messages::{Form, Want};
use crate::offer::{Content, Offer};
use crate::ranges::Ranges;

/// Wants of a taker that are not answered yet: small files at 100 ms fill a link with fewer.
pub const MAX_WANTS: usize = 256;

/// Ranges in these, all together: 512 KiB of memory.
pub const MAX_WANTED_RANGES: usize = 32_768;

#[derive(Debug)]
pub(super) struct Wants {
    queue: VecDeque<Want>,
    ranges: usize,
    last_number: u32,
    /// The next file of which nothing may have been said, if they go unasked.
    unasked: Option<u32>,
    /// Which files were asked for, by number.
    asked: Vec<bool>,
}

impl Wants {
    pub(super) fn new(at_once: bool, files: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            ranges: 0,
            last_number: 0,
            unasked: at_once.then_some(0),
            asked: vec![false; files as usize],
        }
    }

    /// Takes in a want, or says what is wrong with it.
    pub(super) fn push(&mut self, want: Want, offer: &Offer) -> Result<(), &'static str> {
        if want.number <= self.last_number {
            return Err("a want that was there before");
        }
        let entry = offer.entry(want.file).ok_or("no such file")?;
        if entry.content == Content::Directory {
            return Err("a want for a directory");
        }
        let ranges = ranges_of(&want.form);
        if self.queue.len() >= MAX_WANTS || self.ranges + ranges > MAX_WANTED_RANGES {
            return Err("more wants than may wait");
        }
        self.last_number = want.number;
        self.ranges += ranges;
        if let Some(asked) = self.asked.get_mut(want.file as usize) {
            *asked = true;
        }
        self.queue.push_back(want);
        Ok(())
    }

    /// Puts a want back: something has to be made for it first.
    pub(super) fn put_back(&mut self, want: Want) {
        self.ranges += ranges_of(&want.form);
        self.queue.push_front(want);
    }

    /// The next want; then the next file with bytes in it of which nothing was said, as a want with number
    /// 0.
    pub(super) fn next(&mut self, offer: &Offer) -> Option<Want> {
        if let Some(want) = self.queue.pop_front() {
            self.ranges -= ranges_of(&want.form);
            return Some(want);
        }
        while let Some(file) = self.unasked {
            let entry = offer.entry(file)?;
            self.unasked = Some(file + 1);
            let asked = self.asked.get_mut(file as usize)?;
            if !std::mem::replace(asked, true) && entry.size() != Some(0) {
                return Some(Want { number: 0, file, form: Form::Any(Ranges::new()) });
            }
        }
        None
    }

    /// Forgets what is wanted of a file; nor does it go unasked.
    pub(super) fn drop_file(&mut self, file: u32) {
        self.queue.retain(|want| want.file != file);
        self.ranges = self.queue.iter().map(|want| ranges_of(&want.form)).sum();
        if let Some(asked) = self.asked.get_mut(file as usize) {
            *asked = true;
        }
    }
}

fn ranges_of(form: &Form) -> usize {
    match form {
        Form::Any(ranges) | Form::Pieces(ranges) => ranges.iter().len(),
        Form::Whole | Form::Recipe => 0,
    }
}
