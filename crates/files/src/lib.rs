//! Files and directories over haulier: streamed from and to disk, verified as they come, resumed, and only
//! what is missing. `docs/FILES.md` is the design.
