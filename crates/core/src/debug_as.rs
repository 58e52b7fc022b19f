//! `Debug` of what holds payload: how much, and none of it. It ends up in the logs of games.

/// Implements `Debug` for a type from these values alone; for a secret, from none.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as {
    ($name:ident $([$($parameter:tt)+])?: |$this:ident| $($field:ident = $value:expr),* $(,)?) => {
        impl core::fmt::Debug for $name $(<$($parameter)+>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
