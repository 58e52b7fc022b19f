"""A connection after its handshake (sections 2.2, 2.3, 4.1 and 5), the same for both ends.

It has no socket and no clock: `receive` takes a datagram, `poll` gives those to send, `next_time` says when
to poll again. What the frames of sections 4.2 to 4.4 mean is the business of its `stream`.
"""

import hmac
import os
import random
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

import datagrams as d
from frames import Frame, ack_eliciting, read_all, write, write_all
from parameters import Parameters
from path import PathSize, Probe
from recovery import ProtocolError, Received, Recovery, Sent
from wire import Address, Refused

SIZE = 1200
MAX_CLOSES = 6
TIMED_OUT = 8
LEAST_RESPONSE = 64
GREASE_ONE_IN = 1000
KEY_LIFE = 120.0
AT_ONCE = (1, 4, 8, 16)
USUAL_ACK_DELAY = 0.010
REPEATS = (0.01, 0.02, 0.04, 0.08, 0.16)


class Stream:
    """What a connection carries; the default carries nothing."""

    def on_frame(self, frame: Frame, now: float) -> bool:
        """False: the frame is not kept, so its datagram must not be acknowledged."""
        return True

    def state_frames(self, now: float) -> List[Frame]:
        """What goes with every ack, such as a progress frame."""
        return []

    def next_slice(self, room: int, now: float) -> Optional[Tuple[List[Frame], Frame, Any]]:
        """Frames that go before a slice, the slice, and what `on_acked` and `on_lost` get."""
        return None

    def on_acked(self, item: Any, now: float) -> None:
        pass

    def on_lost(self, item: Any, now: float) -> None:
        pass

    def still_wanted(self, frame: Frame) -> bool:
        """Whether a frame whose datagram was lost is to be sent again."""
        return True

    def receiving(self) -> bool:
        """Whether the rest of a block is expected."""
        return False

    def on_time(self, now: float) -> None:
        """Called by each poll; raises ProtocolError, too."""


class Connection:
    def __init__(
        self,
        server: bool,
        my_id: bytes,
        peer_id: bytes,
        seal: d.Protection,
        opening: d.Protection,
        mine: Parameters,
        theirs: Parameters,
        address: Address,
        now: float,
    ) -> None:
        self.server, self.my_id, self.peer_id = server, my_id, peer_id
        self.sealing, self.sealing_number, self.sealing_since = seal, 0, now
        self.sealing_first, self.sealing_acked = 0, False
        self.opening, self.next_opening, self.opening_number = opening, opening.next(), 0
        self.old_opening: Optional[d.Protection] = None
        self.old_until = 0.0
        self.theirs, self.address = theirs, address
        self.max_ack_delay = theirs["max_ack_delay_ms"] / 1000
        self.my_ack_delay = mine["max_ack_delay_ms"] / 1000
        self.idle = max(1.0, min(mine["idle_ms"], theirs["idle_ms"]) / 1000)
        self.stream = Stream()
        self.received, self.recovery = Received(), Recovery()
        self.reliable: Deque[Frame] = deque()
        self.control: List[Frame] = []
        # Acks.
        self.ack_every, self.ack_delay = 16, 0.010
        self.unacked = self.eliciting_seen = 0
        self.ack_due: Optional[float] = None
        self.gap_reported = False
        self.largest_at = now
        self.arrivals: Deque[Tuple[int, int]] = deque(maxlen=32)
        self.datagrams_received = self.acks_alone = 0
        self.repeat_from, self.repeat, self.repeating = now, len(REPEATS), False
        # Life.
        self.heard = self.eliciting_sent = now
        self.first_waiting: Optional[float] = None
        self.started = now
        self.validated = not server
        self.on_validated: Callable[[], None] = lambda: None
        self.credit_bytes = self.credit_datagrams = 0  # the amplification limit, of a server
        self.response_start = b""
        self.challenge: Optional[Tuple[bytes, Address, float, int]] = None
        self.reset_token: Optional[bytes] = None
        self.path = PathSize(theirs["largest_datagram"])
        self.closing: Optional[Frame] = None
        self.close_sent, self.close_at = 0, now
        self.answer_close = False
        self.ended: Optional[str] = None
        self.close_code: Optional[int] = None

    # Receiving.

    def receive(self, data: bytes, address: Address, now: float) -> bool:
        """Takes a datagram with this connection's id; whether it was verified."""
        try:
            if data[0] == d.RESPONSE:
                _, _, low, before, sealed = d.split_response(data)
            else:
                before, sealed, low = data[:13], data[13:], int.from_bytes(data[9:13], "little")
            number = d.expand(low, self.received.largest + 1)
            if not self.received.is_new(number):
                return False
            phase = 0 if data[0] == d.RESPONSE else data[0] & 1
            plaintext = self._open(number, phase, before, sealed, now)
        except Refused:
            return False
        if self.ended is not None:
            return True
        newest = number > self.received.largest
        self.received.remember(number)
        self.datagrams_received += 1
        self.heard, self.first_waiting = now, None
        if self.server:
            self._on_address(address, newest, now)
        try:
            self._on_frames(read_all(plaintext), number, newest, address, now)
        except Refused as refused:
            self.close(1, str(refused), now)
        except ProtocolError as error:
            self.close(error.code, error.reason, now)
        return True

    def _open(self, number: int, phase: int, before: bytes, sealed: bytes, now: float) -> bytes:
        """By the key of this phase: the current one, the previous one, or the next (H-2.3b)."""
        if phase == self.opening_number & 1:
            return self.opening.open(number, before, sealed)
        if self.opening.suite is None:
            raise Refused("bad_phase", "in mode open it is always 0")
        if self.old_opening is not None and now < self.old_until:
            try:
                return self.old_opening.open(number, before, sealed)
            except Refused:
                pass
        plaintext = self.next_opening.open(number, before, sealed)
        self.old_opening, self.old_until = self.opening, now + 3 * self.recovery.pto(self.max_ack_delay)
        self.opening, self.next_opening = self.next_opening, self.next_opening.next()
        self.opening_number += 1
        if self.sealing_number < self.opening_number:
            self._update_sealing(now)
        return plaintext

    def _update_sealing(self, now: float) -> None:
        self.sealing, self.sealing_number = self.sealing.next(), self.sealing_number + 1
        self.sealing_since = now
        self.sealing_first, self.sealing_acked = self.recovery.next_number, False

    def update_key(self, now: float) -> bool:
        """Starts a key update, if it may (H-2.3a)."""
        if self.sealing.suite is None or not self.sealing_acked or self.sealing_number != self.opening_number:
            return False
        self._update_sealing(now)
        return True

    def _on_frames(self, frames: List[Frame], number: int, newest: bool, address: Address, now: float) -> None:
        if self.closing is not None:
            frames = [frame for frame in frames if frame["type"] == "close"]
        keep = True
        for frame in frames:
            if frame["type"] == "progress":
                frame = {**frame, "packet_number": number}
            elif frame["type"] == "path_response":
                frame = {**frame, "address": address}
            keep = self._on_frame(frame, now) and keep
        if not keep:
            return
        gap = self.received.acknowledge(number)
        micros = int(now * 1e6)
        if newest:
            self.largest_at = now
            self.arrivals.append((number, micros))
        if any(map(ack_eliciting, frames)):
            self._plan_ack(gap, now)

    def _plan_ack(self, gap: bool, now: float) -> None:
        """H-4.1b."""
        self.unacked += 1
        self.eliciting_seen += 1
        self.repeat, self.repeating = len(REPEATS), False
        bulk = self.stream.receiving()
        delay = self.ack_delay if bulk else self.my_ack_delay
        report_gap = bulk and gap and not self.gap_reported and self.ack_delay <= USUAL_ACK_DELAY
        self.gap_reported = gap and report_gap
        at_once = self.eliciting_seen == 1 or (bulk and self.eliciting_seen in AT_ONCE) or report_gap
        due = now if at_once or self.unacked >= self.ack_every else now + delay
        self.ack_due = due if self.ack_due is None else min(self.ack_due, due)

    def _on_frame(self, frame: Frame, now: float) -> bool:
        kind = frame["type"]
        if kind in ("padding", "ping", "unknown"):
            return True
        if kind in ("ack", "ack_ecn"):
            acked, lost = self.recovery.on_ack(frame, now, self.max_ack_delay)
            for number, sent in acked:
                self.sealing_acked = self.sealing_acked or number >= self.sealing_first
                if isinstance(sent.item, Probe):
                    self.path.on_acked(sent.item)
                elif sent.item is not None:
                    self.stream.on_acked(sent.item, now)
            self._on_lost(lost, now)
            self.path.on_feedback(
                [sent.size for _, sent in acked],
                [sent.size for _, sent in lost if not isinstance(sent.item, Probe)],
                now,
            )
        elif kind == "ack_frequency":
            self.ack_every, self.ack_delay = frame["datagrams"], frame["delay_us"] / 1e6
        elif kind == "path_challenge":
            self.control.append({"type": "path_response", "bytes": frame["bytes"]})
        elif kind == "path_response":
            asked = self.challenge is not None and frame["address"] == self.challenge[1]
            if asked and self.challenge is not None and hmac.compare_digest(self.challenge[0], frame["bytes"]):
                self.address, self.challenge = self.challenge[1], None
                self.path.on_new_path()
        elif kind == "reset_token":
            self.reset_token = frame["token"]
        elif kind == "close":
            self._on_close(frame)
        else:
            return self.stream.on_frame(frame, now)
        return True

    def _on_close(self, frame: Frame) -> None:
        """Answered once by an end that was open, and the answer to one that was closing (H-5.3)."""
        if self.closing is not None:
            self.ended = "closed"
            return
        self.answer_close, self.closing = True, {"type": "close", "code": 0, "reason": b""}
        reason = frame["reason"].decode(errors="replace")
        self.ended, self.close_code = f"closed by the peer: {frame['code']} {reason}".strip(), frame["code"]

    def _on_lost(self, lost: List[Tuple[int, Sent]], now: float) -> None:
        for _, sent in lost:
            self.reliable.extend(frame for frame in sent.reliable if self.stream.still_wanted(frame))
            if isinstance(sent.item, Probe):
                self.path.on_lost(sent.item, now)
            elif sent.item is not None:
                self.stream.on_lost(sent.item, now)

    def _on_address(self, address: Address, newest: bool, now: float) -> None:
        """A server's: the first data validates; a newer one from elsewhere starts a challenge (section 5.2)."""
        if not self.validated:
            self.validated, self.response_start = True, b""
            self.on_validated()
        elif newest and address != self.address and (self.challenge is None or self.challenge[1] != address):
            self.challenge = (os.urandom(8), address, now, 0)

    # Sending.

    def send(self, frame: Frame) -> None:
        """A frame that is sent again until its datagram is acknowledged."""
        self.reliable.append(frame)

    def ping(self) -> None:
        self.control.append({"type": "ping"})

    def acknowledge_now(self, now: float) -> None:
        self.ack_due = now

    def close(self, code: int, reason: str, now: float) -> None:
        if self.closing is None and self.ended is None:
            self.closing = {"type": "close", "code": code, "reason": reason.encode()[:255]}
            self.close_at, self.close_code = now, code

    def close_reason(self) -> str:
        """Why this end closes, if it does."""
        return "" if self.closing is None else self.closing["reason"].decode(errors="replace")

    def on_reset(self, token: bytes) -> None:
        """H-3.7b, of a client."""
        if self.reset_token is not None and hmac.compare_digest(token, self.reset_token):
            self.ended = "the server has no such connection any more"

    def poll(self, now: float) -> List[Tuple[bytes, Address]]:
        """All datagrams to send now."""
        if self.answer_close:
            self.answer_close = False
            return [(self.sealed_close(now), self.address)]
        if self.ended is not None:
            return []
        if self.closing is not None:
            return self._poll_close(now)
        try:
            self.stream.on_time(now)
        except ProtocolError as error:
            self.close(error.code, error.reason, now)
            return self._poll_close(now)
        self._on_timers(now)
        if self.ended is not None:
            return []
        out = self._poll_challenge(now) + self._poll_probe(now)
        while len(out) < 64:
            if not self.validated and (self.credit_bytes < SIZE or self.credit_datagrams < 1):
                break
            made = self._assemble(now)
            if made is None:
                break
            out.append((made, self.address))
        return out

    def _on_timers(self, now: float) -> None:
        if now >= self.heard + self.idle:
            self.ended = "nothing was heard for the idle timeout"
            return
        lost_at = self.recovery.loss_time()
        if lost_at is not None and now >= lost_at:
            self._on_lost(self.recovery.find_lost(now), now)
        probe_at = self.recovery.probe_time(self.max_ack_delay)
        if probe_at is not None and now >= probe_at:
            self.recovery.probes += 1
            self.ping()
        elif now >= self.eliciting_sent + self.idle / 3 or now >= self._waiting_ping():
            self.ping()
            self.first_waiting = now
        if now - self.sealing_since > KEY_LIFE:
            self.update_key(now)
        if self.repeat < len(REPEATS) and now >= self.repeat_from + REPEATS[self.repeat] and self.received.ranges:
            self.repeat += 1
            self.repeating, self.ack_due = True, now

    def _waiting_ping(self) -> float:
        """When an end that waits for the rest of a block asks whether its address changed (H-5.1a)."""
        if not self.stream.receiving():
            return float("inf")
        return max(self.heard, self.first_waiting or 0) + 0.5

    def _poll_challenge(self, now: float) -> List[Tuple[bytes, Address]]:
        if self.challenge is None or now < self.challenge[2]:
            return []
        token, address, _, count = self.challenge
        if count == 3:
            self.challenge = None
            return []
        self.challenge = (token, address, now + self.recovery.pto(self.max_ack_delay), count + 1)
        return [(self._seal([{"type": "path_challenge", "bytes": token}], [], None, now), address)]

    def _poll_probe(self, now: float) -> List[Tuple[bytes, Address]]:
        """A ping and padding, of a size that the path may carry (section 5.6)."""
        size = self.path.next_probe(now) if self.validated and self.server else None
        if size is None:
            return []
        self.path.outstanding = True
        room = size - self._start() - 1
        return [
            (self._seal([{"type": "ping"}, {"type": "padding", "count": room}], [], Probe(size), now), self.address)
        ]

    def _poll_close(self, now: float) -> List[Tuple[bytes, Address]]:
        """A probe timeout apart, until one comes back (H-5.3)."""
        if now < self.close_at:
            return []
        if self.close_sent == MAX_CLOSES:
            self.ended = "closed, without an answer"
            return []
        self.close_sent += 1
        self.close_at = now + min(max(self.recovery.pto(self.max_ack_delay), 0.05), 1.0)
        return [(self.sealed_close(now), self.address)]

    def sealed_close(self, now: float) -> bytes:
        """A datagram with the close; without one, that of a server that heard nothing."""
        close = self.closing or {"type": "close", "code": TIMED_OUT, "reason": b""}
        return self._seal([close], [], None, now)

    def _start(self) -> int:
        """Bytes of a datagram before its frames, and of its tag."""
        return (len(self.response_start) + 4 if self.response_start else 13) + self.sealing.overhead

    def _assemble(self, now: float) -> Optional[bytes]:
        """The next datagram: an ack if one is due or there is something else, control, reliable, a slice."""
        room = (SIZE if self.response_start else self.path.size) - self._start()
        due = self.ack_due is not None and now >= self.ack_due
        acks: List[Frame] = []
        if self.received.ranges and (due or self.unacked):
            acks = self._ack_frames(now)
            room -= len(write_all(acks))
        frames: List[Frame] = []
        while self.control and room >= 16:
            frames.append(self.control.pop(0))
            room -= len(write(frames[-1]))
        reliable: List[Frame] = []
        while self.reliable and len(write(self.reliable[0])) <= room:
            reliable.append(self.reliable.popleft())
            room -= len(write(reliable[-1]))
        frames += reliable
        item = None
        found = self.stream.next_slice(room, now) if self.recovery.may_send(self.path.size) else None
        if found is not None:
            before, last, item = found
            reliable = reliable + before
            frames += before + [last]
        elif frames and room > 40 and random.randrange(GREASE_ONE_IN) == 0:
            frames.append(
                {"type": "unknown", "number": random.randrange(96, 128), "data": os.urandom(random.randrange(17))}
            )
        if not frames and not self._may_ack_alone(due, acks):
            return None
        if acks:
            self.unacked, self.ack_due = 0, None
            if not self.repeating and self.stream.receiving():
                self.repeat, self.repeat_from = 0, now
            self.repeating = False
        return self._seal(acks + frames, reliable, item, now)

    def _may_ack_alone(self, due: bool, acks: List[Frame]) -> bool:
        """H-4.1c: at most one for two datagrams received, rounded up. One that may not go is dropped."""
        if not due:
            return False
        if not acks or self.acks_alone >= (self.datagrams_received + 1) // 2:
            self.ack_due, self.repeating = None, False
            return False
        self.acks_alone += 1
        return True

    def _ack_frames(self, now: float) -> List[Frame]:
        delay = int((now - self.largest_at) * 1e6)
        frames = [self.received.ack(max(delay, 0))]
        if self.stream.receiving() and self.arrivals:
            newest, at = self.arrivals[-1]
            more, previous = [], newest
            for number, micros in list(self.arrivals)[-2::-1][:8]:
                more.append([previous - number, at - micros])
                previous = number
            frames.append({"type": "arrivals", "number": newest & 0xFFFFFFFF, "us": at & 0xFFFFFFFF, "more": more})
        return frames + self.stream.state_frames(now)

    def _seal(self, frames: List[Frame], reliable: List[Frame], item: Any, now: float) -> bytes:
        plaintext = write_all(frames)
        number = self.recovery.take_number()
        if self.response_start:
            plaintext = plaintext.rjust(LEAST_RESPONSE - self._start(), b"\0")
            before = self.response_start + (number & 0xFFFFFFFF).to_bytes(4, "little")
        else:
            first = (d.FROM_SERVER if self.server else d.FROM_CLIENT) | self.sealing_number & 1
            before = d.data_header(first, self.peer_id, number)
        data = self.sealing.seal(number, before, plaintext)
        eliciting = any(map(ack_eliciting, frames))
        self.recovery.on_sent(number, Sent(now, len(data), eliciting, reliable, item))
        if eliciting:
            self.eliciting_sent = now
        if not self.validated:
            self.credit_bytes -= len(data)
            self.credit_datagrams -= 1
        return data

    def next_time(self, now: float) -> float:
        """When to poll next, if nothing arrives before."""
        if self.closing is not None:
            return self.close_at
        times = [self.heard + self.idle, self.eliciting_sent + self.idle / 3, self._waiting_ping()]
        times += [
            t
            for t in (self.ack_due, self.recovery.loss_time(), self.recovery.probe_time(self.max_ack_delay))
            if t is not None
        ]
        if self.challenge is not None:
            times.append(self.challenge[2])
        if self.repeat < len(REPEATS):
            times.append(self.repeat_from + REPEATS[self.repeat])
        return min(times)
