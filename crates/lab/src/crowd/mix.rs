//! The senders that share a link, and what is odd about the link.

/// The senders of a cell, and its kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mix {
    /// Ours alone, all from the first second on.
    Ours,
    /// Half of ours, half of TCP CUBIC.
    Cubic,
    /// Ours. Of three one stays, one joins after a quarter of the run, and one leaves then.
    Turnover,
    /// Ours, and the way up has a twentieth of the rate.
    SlowUp,
    /// Half of ours, half of TCP BBR.
    Bbr,
    /// Ours, from the clients to their servers: the way up is the bottleneck, and that down is ten times as
    /// fast.
    Upload,
    /// Ours, and CoDel drops from the queue.
    CoDel,
    /// Ours, and CoDel marks in the queue, for the link carries ECN.
    Marks,
    /// Ours, and the rate is halved and restored in turn.
    Steps,
    /// Ours, and the link delivers in bunches.
    Bunches,
    /// TCP CUBIC alone: what others do there.
    OnlyCubic,
    /// TCP BBR alone.
    OnlyBbr,
}

/// What a flow is in its mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ours, from the first second on.
    Stays,
    /// Ours, from a quarter of the run on.
    Joins,
    /// Ours, until then.
    Leaves,
    /// TCP CUBIC.
    Cubic,
    /// TCP BBR.
    Bbr,
}

impl Mix {
    /// All of them, in the order of the numbers of their cells: a new one comes last.
    pub const ALL: [Self; 12] = [
        Self::Ours,
        Self::Cubic,
        Self::Turnover,
        Self::SlowUp,
        Self::Bbr,
        Self::Upload,
        Self::CoDel,
        Self::Marks,
        Self::Steps,
        Self::Bunches,
        Self::OnlyCubic,
        Self::OnlyBbr,
    ];

    /// Its name, in words joined by underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Cubic => "cubic",
            Self::Turnover => "turnover",
            Self::SlowUp => "slow_up",
            Self::Bbr => "bbr",
            Self::Upload => "upload",
            Self::CoDel => "codel",
            Self::Marks => "marks",
            Self::Steps => "steps",
            Self::Bunches => "bunches",
            Self::OnlyCubic => "only_cubic",
            Self::OnlyBbr => "only_bbr",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mix| mix.name() == name)
    }

    /// Whether it is ours alone on a link that is not plain: there are many of these mixes.
    pub(super) const fn is_ours_on_odd_link(self) -> bool {
        matches!(self, Self::Upload | Self::CoDel | Self::Marks | Self::Steps | Self::Bunches)
    }

    /// What the flow with this index is.
    pub(super) const fn role(self, flow: usize) -> Role {
        match (self, flow % 2, flow % 3) {
            (Self::OnlyCubic, ..) | (Self::Cubic, 1, _) => Role::Cubic,
            (Self::OnlyBbr, ..) | (Self::Bbr, 1, _) => Role::Bbr,
            (Self::Turnover, _, 1) => Role::Joins,
            (Self::Turnover, _, 2) => Role::Leaves,
            _ => Role::Stays,
        }
    }
}

impl Role {
    /// Whether it is one of ours.
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::Stays | Self::Joins | Self::Leaves)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stays => "stays",
            Self::Joins => "joins",
            Self::Leaves => "leaves",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_found_by_its_name() {
        for mix in Mix::ALL {
            assert_eq!(Mix::named(mix.name()), Some(mix));
        }
        assert_eq!(Mix::named("reno"), None);
    }

    #[test]
    fn roles_are_those_of_the_mix() {
        let roles = |mix: Mix| [0, 1, 2, 3].map(|flow| mix.role(flow));
        let (stays, joins, leaves) = (Role::Stays, Role::Joins, Role::Leaves);
        assert_eq!(roles(Mix::Turnover), [stays, joins, leaves, stays]);
        assert_eq!(roles(Mix::Bbr), [stays, Role::Bbr, stays, Role::Bbr]);
        assert_eq!(roles(Mix::OnlyCubic), [Role::Cubic; 4]);
        assert_eq!(roles(Mix::Upload), [stays; 4]);
    }
}
