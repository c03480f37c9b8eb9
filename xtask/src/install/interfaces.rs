//! The libraries of the smaller interfaces: what each is built as, and what programs call it.

/// A library with its headers. Its pkg-config file has the name of the package.
pub struct InterfaceLibrary {
    pub package: &'static str,
    /// What cargo builds.
    pub built: &'static str,
    /// Under `lib`: the name that programs have in them first, then links to it.
    pub names: &'static [&'static str],
    /// What `-l` is given.
    pub linked: &'static str,
    /// Files of its folder `include`, with their places under the prefix's `include`.
    pub headers: &'static [&'static str],
    pub about: &'static str,
}

impl InterfaceLibrary {
    /// Where its sources are.
    pub fn folder(&self) -> String {
        self.package.replacen("weft-", "interfaces/", 1).replace('-', "/")
    }
}

pub const ALL: &[InterfaceLibrary] = &[
    InterfaceLibrary {
        package: "weft-native",
        built: "libweft_native.so",
        names: &["libweft.so.1", "libweft.so"],
        linked: "weft",
        headers: &["weft.h"],
        about: "ports, transfers and active messages over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-pvm",
        built: "libweft_pvm.so",
        names: &["libpvm3.so.3", "libpvm3.so", "libgpvm3.so.3", "libgpvm3.so", "libfpvm3.so"],
        linked: "pvm3",
        headers: &["pvm3.h", "fpvm3.h"],
        about: "PVM 3.4 over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-p4",
        built: "libweft_p4.so",
        names: &["libp4.so.1", "libp4.so"],
        linked: "p4",
        headers: &["p4.h", "p4f.h"],
        about: "P4 1.4b over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-tcgmsg",
        built: "libweft_tcgmsg.so",
        names: &["libtcgmsg.so.1", "libtcgmsg.so"],
        linked: "tcgmsg",
        headers: &["tcgmsg.h", "sndrcv.h", "srftoc.h", "msgtypesc.h", "typesf2c.h", "msgtypesf.h", "tcgmsg.fh"],
        about: "TCGMSG over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-tcgmsg-integer8",
        built: "libweft_tcgmsg_integer8.so",
        names: &["libtcgmsg8.so.1", "libtcgmsg8.so"],
        linked: "tcgmsg8 -ltcgmsg",
        headers: &[],
        about: "TCGMSG for Fortran with integers of eight bytes",
    },
    InterfaceLibrary {
        package: "weft-am",
        built: "libweft_am.so",
        names: &["libam.so.1", "libam.so"],
        linked: "am",
        headers: &["am.h", "amudp.h", "amudp_const.h", "amudp_spmd.h"],
        about: "Active Messages over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-fm",
        built: "libweft_fm.so",
        names: &["libfm.so.1", "libfm.so"],
        linked: "fm",
        headers: &["fm.h"],
        about: "Fast Messages over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-panda",
        built: "libweft_panda.so",
        names: &["libpanda.so.2", "libpanda.so"],
        linked: "panda",
        headers: &["pan_sys.h", "pan_mp.h", "pan_rpc.h", "pan_group.h", "pan_bg.h", "pan_util.h", "pan_trace.h"],
        about: "Panda 2.0 over user-level communication",
    },
    InterfaceLibrary {
        package: "weft-objects-c",
        built: "libweft_objects_c.so",
        names: &["libweft_objects.so.1", "libweft_objects.so"],
        linked: "weft_objects",
        headers: &["weft_objects.h"],
        about: "shared objects over user-level communication",
    },
];
