//! `playground-bindgen ENGINE.wasm DIRECTORY` writes `engine.js` and `engine_bg.wasm`, for a page that takes
//! them as a module.

use std::env;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(engine), Some(directory)) = (args.next(), args.next()) else {
        return Err("playground-bindgen ENGINE.wasm DIRECTORY".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(engine)
        .out_name("engine")
        .web(true)?
        .typescript(false)
        .omit_default_module_path(false);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(directory)?;
    Ok(())
}
