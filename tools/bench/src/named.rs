//! Enums whose variants have names, said where the variants are.

/// An enum with all its variants in a list and the title of each; or, with `;` behind each variant, also the word by
/// which the command line and the files of results know it, which comes first.
macro_rules! named {
    ($(#[$about:meta])* pub enum $kind:ident { $($(#[$doc:meta])* $name:ident = $title:literal,)+ }) => {
        $(#[$about])*
        pub enum $kind {
            $($(#[$doc])* $name,)+
        }

        impl $kind {
            /// In the order of the tables.
            pub const ALL: [Self; [$($kind::$name),+].len()] = [$(Self::$name),+];

            pub fn title(self) -> &'static str {
                match self {
                    $(Self::$name => $title,)+
                }
            }
        }
    };
    ($(#[$about:meta])* pub enum $kind:ident { $($(#[$doc:meta])* $name:ident = $word:literal, $title:literal;)+ }) => {
        named! { $(#[$about])* pub enum $kind { $($(#[$doc])* $name = $title,)+ } }

        impl $kind {
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}
