//! Captures of joins that were simulated.

use std::fs::File;

use haulier::trace::key_log_line;
use haulier_lab::captures;
use haulier_lab::scenes::Scene;

/// Writes a capture of this scene to this file; returns the key log.
pub fn capture_scene(query: &str, is_sealed: bool, file: &str) -> String {
    let scene = Scene::parse(query).unwrap();
    let keys = captures::write(&scene, is_sealed, File::create(file).unwrap()).unwrap();
    keys.iter().map(key_log_line).collect()
}
