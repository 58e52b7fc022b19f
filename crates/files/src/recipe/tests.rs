//! Recipes of files that changed a little, and bytes that are none.

use std::ops::Range;

use bytes::Bytes;
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::values::CHUNK_BYTES;

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// The new file, put together from the plan, the old file, and the wanted pieces in parts of this many bytes.
fn assembled(plan: &Plan, old: &[u8], new: &[u8], part_bytes: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old");
    std::fs::write(&path, old).unwrap();
    let recipe = Recipe::of(new).unwrap();
    let ranges = recipe.ranges_of(&plan.wanted()).unwrap();
    let wanted: Vec<u8> = ranges
        .into_iter()
        .flat_map(|range| &new[range.start as usize..range.end as usize])
        .copied()
        .collect();
    assert_eq!(wanted.len() as u64, plan.wanted_bytes());
    let mut parts = wanted.chunks(part_bytes);
    let mut assembly = Assembly::new(plan, SourceFile::open(&path).unwrap());
    let mut chunks: Vec<Bytes> = Vec::new();
    loop {
        match assembly.next_chunk().unwrap() {
            Assembled::Chunk(index, bytes) => {
                assert_eq!(index as usize, chunks.len());
                chunks.push(bytes);
            }
            Assembled::NeedsBytes => assembly.give(Bytes::copy_from_slice(parts.next().unwrap())),
            Assembled::End => break,
        }
    }
    assert!(chunks.iter().rev().skip(1).all(|chunk| chunk.len() == CHUNK_BYTES));
    chunks.concat()
}

/// The bar: 1 % changed in one place, and a byte before everything, cost at most 2 % with the recipe.
#[test]
fn a_small_change_costs_little() {
    let old = random(1, 64 << 20);
    let mut new = old.clone();
    let changed = old.len() / 100;
    new[20 << 20..][..changed].copy_from_slice(&random(2, changed));
    new.insert(0, 7);
    let (old_recipe, new_recipe) = (Recipe::of(&old[..]).unwrap(), Recipe::of(&new[..]).unwrap());
    let recipe_bytes = new_recipe.to_bytes().len();
    let plan = Plan::new(&old_recipe, &new_recipe).unwrap();
    let cost = plan.wanted_bytes() + recipe_bytes as u64;
    println!("{} bytes wanted, {recipe_bytes} of recipe, of {}", plan.wanted_bytes(), new.len());
    assert!(cost * 50 <= new.len() as u64, "{cost} bytes");
    assert_eq!(plan.copied_bytes() + plan.wanted_bytes(), new.len() as u64);
    assert!(assembled(&plan, &old, &new, CHUNK_BYTES) == new);
}

#[test]
fn what_is_mostly_new_is_wanted_whole() {
    let (old, new) = (random(3, 4 << 20), random(4, 4 << 20));
    let recipe = |bytes: &[u8]| Recipe::of(bytes).unwrap();
    assert!(Plan::new(&recipe(&old), &recipe(&new)).is_none());
    let fifth = [&old[..new.len() / 5], &new].concat();
    assert!(Plan::new(&recipe(&old), &recipe(&fifth)).is_none());
    let same = Plan::new(&recipe(&old), &recipe(&old)).unwrap();
    assert_eq!((same.steps(), same.wanted_bytes()), (&[Step::Copy(0..4 << 20)][..], 0));
    assert!(Plan::new(&recipe(&[]), &recipe(&[])).unwrap().steps().is_empty());
}

#[test]
fn a_recipe_is_read_as_it_was_written() {
    for length in [0, 1, 5000, 3 << 20] {
        let recipe = Recipe::of(&random(5, length)[..]).unwrap();
        let bytes = recipe.to_bytes();
        assert!(bytes.len() as u64 <= Recipe::max_bytes(length as u64));
        assert_eq!(Recipe::from_bytes(&bytes, length as u64), Ok(recipe));
        assert!(Recipe::from_bytes(&bytes, length as u64 + 1).is_err());
    }
}

/// What decides on memory and on places in a file is refused.
#[test]
fn a_recipe_of_something_else_is_refused() {
    let entry = |length: u32| [&[7; 16][..], &length.to_le_bytes()].concat();
    let read = |entries: &[u32], length| {
        let bytes: Vec<u8> = entries.iter().flat_map(|&length| entry(length)).collect();
        Recipe::from_bytes(&bytes, length).map(|_| ())
    };
    let (min, max) = (MIN_PIECE_BYTES, MAX_PIECE_BYTES);
    assert_eq!(read(&[max, min, 1], u64::from(max + min + 1)), Ok(()));
    assert_eq!(
        read(&[min - 1, max], u64::from(min - 1 + max)),
        Err(RecipeError::PieceLength { bytes: min - 1 })
    );
    assert_eq!(
        read(&[max + 1], u64::from(max + 1)),
        Err(RecipeError::PieceLength { bytes: max + 1 })
    );
    assert_eq!(read(&[0], 0), Err(RecipeError::FileLength));
    assert_eq!(read(&[min, 0], u64::from(min) + 1), Err(RecipeError::PieceLength { bytes: 0 }));
    assert_eq!(read(&[min; 9], 2 * u64::from(min)), Err(RecipeError::FileLength));
    assert_eq!(Recipe::from_bytes(&entry(5)[..19], 5), Err(RecipeError::CutOff));
    let recipe = Recipe::of(&random(6, 1 << 20)[..]).unwrap();
    let count = recipe.pieces().len() as u32;
    assert_eq!(recipe.ranges_of(&[0..count]), Some(vec![0..1 << 20]));
    assert_eq!(recipe.ranges_of(&[0..count + 1]), None);
    assert_eq!(recipe.ranges_of(&[Range { start: 2, end: 1 }]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any cuts, insertions and moves: what is put together is the new file.
    #[test]
    fn a_plan_makes_the_new_file(
        edits in proptest::collection::vec((0..1_usize << 20, 0..100_000_usize, any::<bool>()), 0..5),
        part_bytes in 1000..300_000_usize,
    ) {
        let old = random(7, 1 << 20);
        let mut new = old.clone();
        for (place, length, is_inserted) in edits {
            let place = place.min(new.len());
            let end = if is_inserted { place } else { (place + length).min(new.len()) };
            let inserted = if is_inserted { random(length as u64, length) } else { Vec::new() };
            new.splice(place..end, inserted);
        }
        let (from, to) = (Recipe::of(&old[..]).unwrap(), Recipe::of(&new[..]).unwrap());
        if let Some(plan) = Plan::new(&from, &to) {
            prop_assert!(assembled(&plan, &old, &new, part_bytes) == new);
        }
    }

    #[test]
    fn any_bytes_are_a_recipe_or_not(bytes: Vec<u8>, length: u64) {
        let _ = Recipe::from_bytes(&bytes, length % (1 << 50));
    }
}
