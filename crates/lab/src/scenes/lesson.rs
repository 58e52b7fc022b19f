//! Lessons: scenes with a story, most of them with a switch that takes one thing out.

/// A scene with a story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// Its name in an address.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What to look at, and why it happens.
    pub story: &'static str,
    /// The scene as it should be.
    pub scene: &'static str,
    /// The scene with the switch on, and what the switch says.
    pub switched: Option<(&'static str, &'static str)>,
}

/// All lessons, in the order in which to read them.
pub const LESSONS: &[Lesson] = &[
    Lesson {
        name: "slow-start",
        title: "Why not TCP",
        story: "The link could carry the block in a quarter of a second. TCP begins with ten \
                packets, and doubles each round trip: while it finds out what the link has, the \
                block is nearly over. On the curve of the rate, the area under the limit that \
                stays empty is the time that the player waits.",
        scene: "senders=haulier,slow-start&rate=20M&rtt=100&loss=0&seed=1",
        switched: Some((
            "senders=haulier,slow-start&rate=20M&rtt=100&loss=2&seed=1",
            "two packets in a hundred are lost",
        )),
    },
    Lesson {
        name: "fragments",
        title: "One fragment is lost, and all of it is",
        story: "The block is one packet of 256 fragments, and one packet in a hundred is lost. Only \
                one send in thirteen has all its fragments: the others are thrown away, each for \
                the sake of a few, and the whole begins again. The article's slices are sent again \
                one by one.",
        scene: "senders=fragments,article&rate=20M&rtt=50&loss=1&queue=1M&bytes=262100&seed=12&lasts=60000",
        switched: Some((
            "senders=fragments,article&rate=20M&rtt=50&loss=0.1&queue=1M&bytes=262100&seed=12&lasts=60000",
            "only one in a thousand is lost",
        )),
    },
    Lesson {
        name: "budget",
        title: "How much may be sent",
        story: "Without a burst, the article's sender has a budget and keeps to it, whatever the link \
                could carry. With 1 Mbit/s the player waits two seconds, with 256 kbit/s eight. \
                haulier/1 learns the link's rate from its first packets.",
        scene: "senders=article-paced,haulier&rate=10M&rtt=50&loss=0&budget=1M&seed=1",
        switched: Some((
            "senders=article-paced,haulier&rate=10M&rtt=50&loss=0&budget=256k&seed=1",
            "256 kbit/s",
        )),
    },
    Lesson {
        name: "hang-1",
        title: "Hang 1: a duplicate is not acknowledged",
        story: "An ack is lost, so the sender sends the slice again. The receiver has it \
                already, and throws it away without a word. Now the sender can never learn that \
                it arrived: it sends the same slices again and again, long after everything is \
                there.",
        scene: "senders=article&rate=10M&rtt=100&loss=30&bytes=64k&seed=36&lasts=8000",
        switched: Some((
            "senders=article&rate=10M&rtt=100&loss=30&bytes=64k&seed=36&lasts=8000&without=duplicates",
            "drop duplicates without an ack",
        )),
    },
    Lesson {
        name: "hang-2",
        title: "Hang 2: the finished chunk waits to be read",
        story: "The last slice arrives, the chunk is whole, and the game has not read it yet. \
                Its ack is lost. A receiver that ignores slices while it is ready to be read \
                never says it again.",
        scene: "senders=article&rate=10M&rtt=100&loss=40&bytes=32k&seed=34&lasts=8000",
        switched: Some((
            "senders=article&rate=10M&rtt=100&loss=40&bytes=32k&seed=34&lasts=8000&without=unread",
            "ignore slices while the chunk is unread",
        )),
    },
    Lesson {
        name: "hang-3",
        title: "Hang 3: the chunk before",
        story: "The game has read the chunk, and the receiver expects the next one. The ack of \
                the last slice was lost, so slices of the chunk before still come. A receiver \
                that wants only the next chunk drops them, and the sender never begins with it.",
        scene: "senders=article&rate=10M&rtt=100&loss=40&bytes=32k&seed=31&lasts=8000",
        switched: Some((
            "senders=article&rate=10M&rtt=100&loss=40&bytes=32k&seed=31&lasts=8000&without=previous",
            "drop slices of the chunk before",
        )),
    },
    Lesson {
        name: "burst",
        title: "A burst and a short queue",
        story: "The article's sender begins with all slices at once. The queue in front of the \
                link has room for a few of them, the rest is dropped there. What is left goes at \
                one Mbit/s.",
        scene: "senders=article,haulier&rate=10M&rtt=80&loss=0&queue=32k&seed=1",
        switched: Some((
            "senders=article-paced,haulier&rate=10M&rtt=80&loss=0&queue=32k&seed=1",
            "no burst, at nine tenths of the link",
        )),
    },
    Lesson {
        name: "repair",
        title: "What a repair slice does",
        story: "A loss is known a round trip later, and what replaces the slice takes another half. A \
                repair slice stands for any one that is missing: a few of them behind the last \
                slice, and the chunk is whole without a word from the client. Take them out, and \
                the player waits for every round.",
        scene: "senders=haulier&rate=10M&rtt=200&loss=5&seed=6",
        switched: Some((
            "senders=haulier&rate=10M&rtt=200&loss=5&seed=6&without=repair",
            "send no repair slices",
        )),
    },
    Lesson {
        name: "very-bad",
        title: "Half of everything is lost",
        story: "With half of all packets lost, any half of source and repair slices make the \
                block whole. The article's sender goes round and round the missing ones.",
        scene: "senders=haulier,article&rate=5M&rtt=150&loss=50&bytes=128k&seed=1",
        switched: None,
    },
    Lesson {
        name: "reordering",
        title: "Out of order",
        story: "Jitter makes packets overtake each other. Slices go where they belong, whenever \
                they come; a sender that takes the first gap for a loss sends much of it twice.",
        scene: "senders=haulier,slow-start,article&rate=20M&rtt=50&loss=2&jitter=20&seed=1",
        switched: None,
    },
];
