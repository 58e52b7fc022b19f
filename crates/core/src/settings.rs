//! Settings: a struct that may grow, with a default for each field and a setter for each.
//!
//! A field has one doc comment, which is also that of its setter: unit, range and default stand in one
//! place, beside the default itself.

/// Defines settings. Fields may be read and changed by name outside the crate; a value is made by `default`,
/// or by `new` from the required ones, and `with_...`.
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $setter:ident;)+
        }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        $crate::settings! { @setters $name $($(#[$doc])* $field: $type, $setter;)+ }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident new($($(#[$first_doc:meta])* $first:ident: $first_type:ty,)+) {
            $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $setter:ident;)+
        }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $name {
            $($(#[$first_doc])* pub $first: $first_type,)+
            $($(#[$doc])* pub $field: $type,)+
        }

        impl $name {
            /// The defaults for everything that is not given here.
            #[must_use]
            pub fn new($($first: $first_type),+) -> Self {
                Self { $($first,)+ $($field: $default,)+ }
            }
        }

        $crate::settings! { @setters $name $($(#[$doc])* $field: $type, $setter;)+ }
    };
    (@setters $name:ident $($(#[$doc:meta])* $field:ident: $type:ty, $setter:ident;)+) => {
        impl $name {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $setter(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
