//! `haulier.soak`: random transfers under random faults, in virtual time.

use std::time::{Duration, Instant};

use haulier_sim::soak::{Budget, Layers, Report, run};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::classes;
use crate::failure::Failure;

/// The interval in which Ctrl-C is looked for: a scenario takes some milliseconds.
const LOOK: Duration = Duration::from_millis(50);

/// Random transfers and a game's packets under random faults in virtual time: all of them have to finish.
///
/// `layers` are "chunks", "packets", "both" or "connection". The same seed gives the same transfers. It stops
/// at the tenth failure; each has the command that replays it.
#[pyfunction]
#[pyo3(signature = (transfers=1000, seed=1, *, layers="both", on_progress=None))]
pub(crate) fn soak(
    py: Python<'_>,
    transfers: u64,
    seed: u64,
    layers: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let known = Layers::ALL.into_iter().find(|known| known.name() == layers);
    let layers = known.ok_or_else(|| {
        let names = Layers::ALL.map(Layers::name).join(", ");
        Failure::usage(format!("{layers:?} is nothing to soak: it is one of {names}"))
    })?;
    let mut looked = Instant::now();
    let mut stop = None;
    let report = py.detach(|| {
        run(seed, layers, Budget::Transfers(transfers), |so_far| {
            if looked.elapsed() < LOOK {
                return true;
            }
            looked = Instant::now();
            let told = Python::attach(|py| {
                py.check_signals()?;
                let Some(on_progress) = &on_progress else { return Ok(()) };
                on_progress.call1(py, (found(py, so_far, seed, layers)?,)).map(drop)
            });
            stop = told.err();
            stop.is_none()
        })
    });
    match stop {
        Some(error) => Err(error),
        None => found(py, &report, seed, layers),
    }
}

fn found(py: Python<'_>, report: &Report, seed: u64, layers: Layers) -> PyResult<Py<PyAny>> {
    let failures = report.failures.iter().map(|failure| {
        let scenario = failure.scenario;
        let replay =
            format!("haulier-lab soak --layers {} --scenario {scenario:#018x}", layers.name());
        Ok(classes::soak_failure(py)?.call1((scenario, &failure.what, replay))?.unbind())
    });
    let failures: Vec<Py<PyAny>> = failures.collect::<PyResult<_>>()?;
    let fields: Bound<'_, PyDict> = classes::fields! { py, report;
        scenarios transfers packets restarts hangs mismatches;
        "virtual_time_s" = report.virtual_time.as_secs_f64(),
        "trace" = format!("{:016x}", report.trace_hash),
        "seed" = seed,
        "layers" = layers.name(),
        "failures" = failures,
    };
    Ok(classes::soak_report(py)?.call((), Some(&fields))?.unbind())
}
