-- A dissector of both wires of haulier for Wireshark 4.0 and newer.
--
--   haulier          haulier/1 (docs/STANDARD-1.md): all that is in the clear; in mode `open` each frame
--   haulier_article  the wire of the articles (docs/STANDARD.md): chunks, fragments, packets
--
-- Other protocols have first bytes like those of haulier/1. So a datagram is taken for it only if its
-- connection is known: by its request, by a right tag of mode `open`, or by a port in the preferences. What
-- is encrypted stays so; `haulier inspect --pcap FILE --keylog KEYS --write OPEN` writes a capture of which
-- all can be read. README.md beside this file says how to install it.

local haulier = Proto("haulier", "haulier/1")
local article = Proto("haulier_article", "haulier, the wire of the articles")

-- Bits ---------------------------------------------------------------------------------------------------

-- Wireshark 4.0 has Lua 5.2, newer ones have 5.4: each has its own operations on bits.
local bits = bit32 or bit
if not bits then
    bits = load([[return {
        band = function(a, b) return a & b end,
        bxor = function(a, b) return a ~ b end,
        rshift = function(a, n) return a >> n end,
    }]])()
end
local band, bxor, rshift = bits.band, bits.bxor, bits.rshift
local WORD = 4294967296

local crc_table = {}
for index = 0, 255 do
    local crc = index
    for _ = 1, 8 do
        crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xedb88320) or rshift(crc, 1)
    end
    crc_table[index] = crc
end

local function crc_step(crc, text)
    for start = 1, #text, 256 do
        local bytes = { string.byte(text, start, math.min(start + 255, #text)) }
        for index = 1, #bytes do
            crc = bxor(rshift(crc, 8), crc_table[band(bxor(crc, bytes[index]), 255)])
        end
    end
    return crc
end

-- The crc32 over a protocol id (8 bytes, as text) and a text.
local function crc32(id, text)
    return bxor(crc_step(crc_step(0xffffffff, id), text), 0xffffffff) % WORD
end

local function little32(text, at)
    local a, b, c, d = string.byte(text, at, at + 3)
    return a + b * 256 + c * 65536 + d * 16777216
end

-- Protocol ids of a preference, as 8 bytes in little endian each.
local function ids_of(list)
    local ids = {}
    for word in list:gmatch("[^%s,]+") do
        local hex = word:match("^0[xX](%x+)$")
        if not hex and word:match("^%d+$") then
            hex = string.format("%x", tonumber(word))
        end
        if hex and #hex <= 16 then
            hex = string.rep("0", 16 - #hex) .. hex
            local id = ""
            for pair in hex:gmatch("%x%x") do
                id = string.char(tonumber(pair, 16)) .. id
            end
            ids[#ids + 1] = { bytes = id, name = "0x" .. hex }
        end
    end
    return ids
end

-- Preferences --------------------------------------------------------------------------------------------

haulier.prefs.protocol_ids = Pref.string("Protocol ids", "0x6861756c66696c65,0x6861756c69657231",
    "Under which the tags of mode open are checked, with commas: those of haulier serve and of the simulator")
haulier.prefs.ports = Pref.range("UDP ports", "",
    "Datagrams on these ports are haulier's: for captures without a handshake", 65535)
article.prefs.chunk_ids = Pref.string("Protocol ids of chunks", "0x11223344",
    "Under which the checksums of slices and acks are computed, separated by commas")
article.prefs.packet_ids = Pref.string("Protocol ids of packets", "0x55667788",
    "Under which the checksums of fragments, payload and ack packets are computed, separated by commas")

local open_ids = ids_of(haulier.prefs.protocol_ids)
local chunk_ids = ids_of(article.prefs.chunk_ids)
local packet_ids = ids_of(article.prefs.packet_ids)
local ports = ""

function haulier.prefs_changed()
    open_ids = ids_of(haulier.prefs.protocol_ids)
    local udp = DissectorTable.get("udp.port")
    if ports ~= "" then
        udp:remove(ports, haulier)
    end
    ports = tostring(haulier.prefs.ports or "")
    if ports ~= "" then
        udp:add(ports, haulier)
    end
end

function article.prefs_changed()
    chunk_ids = ids_of(article.prefs.chunk_ids)
    packet_ids = ids_of(article.prefs.packet_ids)
end

-- Fields -------------------------------------------------------------------------------------------------

local F = {}
local all_fields = {}
local function field(kind, name, label, ...)
    local made = ProtoField[kind]("haulier." .. name, label, ...)
    F[name] = made
    all_fields[#all_fields + 1] = made
end

field("string", "kind", "Kind")
field("string", "direction", "Sent by")
field("uint32", "version", "Version")
field("bytes", "client_id", "Client id")
field("bytes", "server_id", "Server id")
field("bytes", "to", "Id of the receiver")
field("bytes", "sender", "Id of the sender")
field("string", "mode", "Mode")
field("bool", "identity", "The server's identity is required")
field("bytes", "cookie", "Cookie")
field("bytes", "token", "Sealed token")
field("uint32", "token_key", "Token key", base.HEX)
field("uint32", "sealed_bytes", "Sealed bytes")
field("bytes", "sealed", "Sealed")
field("bytes", "padding", "Padding")
field("bytes", "check", "Check")
field("string", "check_is", "The check is")
field("bytes", "tag", "Tag")
field("string", "protocol_id", "Protocol id")
field("uint32", "number", "Packet number, its low 32 bits")
field("uint8", "phase", "Key phase")
field("string", "reason", "Reason")
field("uint32", "place", "Place in line")
field("uint32", "estimate_ms", "Estimate in ms")
field("uint32", "again_ms", "Ask again after ms")
field("bytes", "reset_token", "Reset token")
field("string", "drop", "Dropped by a receiver")
field("framenum", "response_to", "Response to", base.NONE, frametype.REQUEST)
field("double", "response_ms", "After the request in ms")

field("none", "parameter", "Parameter")
field("uint32", "versions", "Version")
field("uint8", "suites", "Suites", base.HEX)
field("uint64", "idle_ms", "Idle timeout in ms")
field("uint64", "largest_block", "Largest block")
field("uint64", "largest_datagram", "Largest datagram")
field("uint64", "max_ack_delay_ms", "Maximum ack delay in ms")
field("uint64", "credit", "Credit in chunks")
field("uint64", "receive_buffer", "Receive buffer")
field("uint64", "channels", "Channels")
field("uint64", "channel_bytes", "Bytes of a channel")
field("uint64", "repair_codes", "Repair codes", base.HEX)
field("uint64", "announced_blocks", "Announced blocks")
field("bytes", "roots_here", "Root that is here")
field("bytes", "request", "Request of the application")
field("uint64", "unknown_parameter", "Unknown parameter")

field("string", "frame", "Frame")
field("uint8", "frame.type", "Type")
local NUMBERS = {
    "padding.bytes", "ack.largest", "ack.delay_us", "ack.ect0", "ack.ect1", "ack.ce",
    "progress.credit", "progress.lateness_ms", "progress.floor", "progress.block", "progress.first",
    "progress.done_after", "slice.block", "slice.chunk", "slice.slice", "slice.bytes", "slice.slice_bytes",
    "slices_here.block", "slices_here.chunk", "slices_here.slice_bytes", "slices_here.slices", "block.block",
    "block.length", "hashes.block", "hashes.level", "hashes.first", "chunks_here.block", "chunks_here.first",
    "chunks_here.chunks", "cancel.block", "cancel.code", "cancel.chunks_opened", "decline.block",
    "decline.code", "packet.sequence", "packet.bytes", "fragment.sequence", "fragment.fragment",
    "fragment.fragments", "fragment.bytes", "message.channel", "message.number", "message.offset",
    "message.whole", "message.bytes", "channel_limit.channel", "channel_limit.messages",
    "channel_limit.bytes", "ack_frequency.datagrams", "ack_frequency.delay_us", "close.code", "ignored.type",
    "ignored.bytes",
}
for _, name in ipairs(NUMBERS) do
    local label = name:gsub("^.*%.", ""):gsub("_", " "):gsub("^%l", string.upper)
    field("uint64", "frame." .. name, label)
end
field("uint64", "frame.block.tag", "Tag", base.HEX)
field("string", "frame.ack.range", "Received")
field("string", "frame.arrivals.arrival", "Arrived")
field("bytes", "frame.block.blake3", "BLAKE3")
field("bytes", "frame.hashes.value", "Value")
field("bytes", "frame.root_here.blake3", "BLAKE3")
field("bytes", "frame.path_challenge.bytes", "Bytes")
field("bytes", "frame.path_response.bytes", "Bytes")
field("bytes", "frame.reset_token.token", "Token")
field("string", "frame.close.reason", "Reason")
field("bool", "frame.message.unordered", "Unordered")
field("bytes", "frame.data", "Data")
haulier.fields = all_fields

local E = {
    malformed = ProtoExpert.new("haulier.malformed", "Malformed: a receiver drops it",
        expert.group.MALFORMED, expert.severity.ERROR),
    check = ProtoExpert.new("haulier.wrong_check", "The check is wrong, or the protocol id is another one",
        expert.group.CHECKSUM, expert.severity.WARN),
    train = ProtoExpert.new("haulier.train", "Captured as one: the system was given these datagrams at once",
        expert.group.COMMENTS_GROUP, expert.severity.CHAT),
}
haulier.experts = { E.malformed, E.check, E.train }

-- Reading ------------------------------------------------------------------------------------------------

-- A reader stops at its end with the reason why a receiver drops the datagram.
local function stop(reason)
    error({ drop = reason }, 0)
end

local Reader = {}
Reader.__index = Reader

local function reader(tvb, from, to)
    return setmetatable({ tvb = tvb, at = from, stop = to }, Reader)
end

function Reader:left()
    return self.stop - self.at
end

-- A range of bytes; an empty one is `nil`, for Wireshark has none.
function Reader:bytes(count)
    if count > self:left() then
        stop("truncated")
    end
    local from = self.at
    self.at = from + count
    return count > 0 and self.tvb(from, count) or nil
end

function Reader:u8()
    local range = self:bytes(1)
    return range:uint(), range
end

function Reader:u16()
    local range = self:bytes(2)
    return range:le_uint(), range
end

function Reader:u32()
    local range = self:bytes(4)
    return range:le_uint(), range
end

-- A varint as a number (above 2^53 only nearly) and its range.
function Reader:varint()
    if self:left() < 1 then
        stop("truncated")
    end
    local first = self.tvb(self.at, 1):uint()
    local length = 2 ^ math.floor(first / 64)
    local range = self:bytes(length)
    if length < 8 then
        return range:uint() - math.floor(first / 64) * 64 * 256 ^ (length - 1), range
    end
    local high = range(0, 4):uint() - 0xc0000000
    return high * WORD + range(4, 4):uint(), range
end

function Reader:varint32()
    local number, range = self:varint()
    if number >= WORD then
        stop("out_of_range")
    end
    return number, range
end

-- A number exactly, also if it is a long varint.
local function exact(number, range)
    if range and range:len() == 8 and number >= 2 ^ 53 then
        return UInt64.new(range(4, 4):uint(), range(0, 4):uint() - 0xc0000000)
    end
    return UInt64.new(number % WORD, math.floor(number / WORD))
end

-- A value without a range is one that is not on the wire: a default.
local function add(tree, name, number, range)
    if not range then
        return tree:add(F[name], exact(number))
    end
    return tree:add(F[name], range, exact(number, range))
end

local function ones(range)
    local count = 0
    for index = 0, range:len() - 1 do
        local byte = range(index, 1):uint()
        while byte > 0 do
            count = count + byte % 2
            byte = math.floor(byte / 2)
        end
    end
    return count
end

-- Frames -------------------------------------------------------------------------------------------------

local MAX_SPAN = 131072
local MAX_MESSAGE = 65536

-- Each reads the fields of a frame into its tree. What it returns is for the column.
local frames = {}

local function ack(r, tree, has_ecn)
    local name = "frame.ack."
    local largest, range = r:u32()
    add(tree, name .. "largest", largest, range)
    local delay, delay_range = r:varint()
    add(tree, name .. "delay_us", delay, delay_range)
    local low = largest
    local first, first_range = r:varint()
    local runs = r:u8()
    if runs > 31 or first >= MAX_SPAN then
        stop("out_of_range")
    end
    local span = first
    low = low - first
    local function received(high, range)
        tree:add(F[name .. "range"], range, string.format("%.0f-%.0f", low % WORD, high % WORD))
    end
    received(largest, first_range)
    for _ = 1, runs do
        local gap = r:varint()
        local run, run_range = r:varint()
        span = span + gap + run
        if gap < 1 or run < 1 or span >= MAX_SPAN then
            stop("out_of_range")
        end
        local high = low - gap - 1
        low = high - run + 1
        received(high, run_range)
    end
    if has_ecn then
        for _, count in ipairs({ "ect0", "ect1", "ce" }) do
            add(tree, name .. count, r:varint())
        end
    end
    return string.format("ack %.0f", largest)
end

frames[0] = { "padding" }
frames[1] = { "ping", function() return "ping" end }
frames[2] = { "ack", function(r, tree) return ack(r, tree, false) end, once = 1 }
frames[3] = { "ack", function(r, tree) return ack(r, tree, true) end, once = 1 }

frames[4] = { "arrivals", function(r, tree)
    local number, range = r:u32()
    local micros, micros_range = r:u32()
    local count = r:u8()
    if count > 31 then
        stop("out_of_range")
    end
    local function arrived(at, when, where)
        tree:add(F["frame.arrivals.arrival"], where, string.format("%.0f at %.0f us", at, when))
    end
    arrived(number, micros, range)
    for _ = 1, count do
        local back = r:varint32()
        local before, where = r:varint32()
        if back < 1 then
            stop("out_of_range")
        end
        number = (number - back) % WORD
        arrived(number, (micros - before) % WORD, where)
    end
    return "arrivals"
end, once = 2 }

frames[5] = { "progress", function(r, tree)
    local name = "frame.progress."
    add(tree, name .. "credit", r:varint())
    add(tree, name .. "lateness_ms", r:varint())
    add(tree, name .. "floor", r:varint32())
    local count = r:u8()
    if count > 64 then
        stop("out_of_range")
    end
    for _ = 1, count do
        add(tree, name .. "block", r:varint32())
        add(tree, name .. "first", r:varint32())
        local bytes, range = r:u8()
        if bytes > 128 then
            stop("out_of_range")
        end
        local map = r:bytes(bytes)
        add(tree, name .. "done_after", map and ones(map) or 0, map or range)
    end
    return "progress"
end, once = 3 }

local function is_slice_size(bytes)
    return bytes > 0 and bytes % 2 == 0 and bytes <= 65472
end

local function slice(kind, word)
    return function(r, tree)
        local name = "frame.slice."
        local block, block_range = r:varint32()
        add(tree, name .. "block", block, block_range)
        local chunk, chunk_range = r:varint32()
        add(tree, name .. "chunk", chunk, chunk_range)
        local index, index_range = r:u8()
        add(tree, name .. "slice", index, index_range)
        local size
        if kind == 7 then
            local range
            size, range = r:u16()
            if not is_slice_size(size) then
                stop("out_of_range")
            end
            add(tree, name .. "slice_bytes", size, range)
        end
        local data = r:bytes(r:left())
        if not data then
            stop("truncated")
        end
        size = size or data:len()
        if not is_slice_size(size) or data:len() > size then
            stop("out_of_range")
        end
        add(tree, name .. "bytes", data:len(), data)
        tree:add(F["frame.data"], data)
        return string.format("%s %.0f.%.0f.%d", word, block, chunk, index)
    end
end
frames[6] = { "slice", slice(6, "slice") }
frames[7] = { "last_slice", slice(7, "last slice") }
frames[8] = { "repair_slice", slice(8, "repair slice") }

frames[9] = { "slices_here", function(r, tree)
    local name = "frame.slices_here."
    add(tree, name .. "block", r:varint32())
    add(tree, name .. "chunk", r:varint32())
    local size, range = r:u16()
    if not is_slice_size(size) then
        stop("out_of_range")
    end
    add(tree, name .. "slice_bytes", size, range)
    local bytes = r:u8()
    if bytes < 1 or bytes > 32 then
        stop("out_of_range")
    end
    local map = r:bytes(bytes)
    add(tree, name .. "slices", ones(map), map)
    return "slices here"
end, once = 4 }

frames[10] = { "block", function(r, tree)
    local name = "frame.block."
    local block, range = r:varint32()
    add(tree, name .. "block", block, range)
    add(tree, name .. "tag", r:varint())
    local length, length_range = r:varint()
    if length > 2 ^ 50 - 262144 then
        stop("out_of_range")
    end
    add(tree, name .. "length", length, length_range)
    tree:add(F[name .. "blake3"], r:bytes(32))
    return string.format("block %.0f of %.0f bytes", block, length)
end }

frames[11] = { "hashes", function(r, tree)
    local name = "frame.hashes."
    add(tree, name .. "block", r:varint32())
    local level, level_range = r:u8()
    add(tree, name .. "level", level, level_range)
    local first, first_range = r:varint32()
    add(tree, name .. "first", first, first_range)
    local count = r:u8()
    if level > 6 or first % 32 ~= 0 or count < 1 or count > 32 then
        stop("out_of_range")
    end
    if count * 32 > r:left() then
        stop("truncated")
    end
    for _ = 1, count do
        tree:add(F[name .. "value"], r:bytes(32))
    end
    return "hashes"
end }

frames[12] = { "chunks_here", function(r, tree)
    local name = "frame.chunks_here."
    add(tree, name .. "block", r:varint32())
    add(tree, name .. "first", r:varint32())
    local bytes = r:u16()
    if bytes < 1 or bytes > 1024 then
        stop("out_of_range")
    end
    local map = r:bytes(bytes)
    add(tree, name .. "chunks", ones(map), map)
    return "chunks here"
end, once = 5 }

frames[13] = { "cancel", function(r, tree)
    local block, range = r:varint32()
    add(tree, "frame.cancel.block", block, range)
    add(tree, "frame.cancel.code", r:varint32())
    add(tree, "frame.cancel.chunks_opened", r:varint32())
    return string.format("cancel %.0f", block)
end }

frames[14] = { "decline", function(r, tree)
    local block, range = r:varint32()
    add(tree, "frame.decline.block", block, range)
    add(tree, "frame.decline.code", r:varint32())
    return string.format("decline %.0f", block)
end }

frames[15] = { "root_here", function(r, tree)
    tree:add(F["frame.root_here.blake3"], r:bytes(32))
    return "root here"
end }

frames[16] = { "packet", function(r, tree)
    local sequence, range = r:u16()
    add(tree, "frame.packet.sequence", sequence, range)
    local bytes, bytes_range = r:u16()
    local data = r:bytes(bytes)
    if bytes > 1024 then
        stop("out_of_range")
    end
    add(tree, "frame.packet.bytes", bytes, bytes_range)
    if data then
        tree:add(F["frame.data"], data)
    end
    return string.format("packet %d", sequence)
end }

frames[17] = { "fragment", function(r, tree)
    local name = "frame.fragment."
    local sequence, range = r:u16()
    add(tree, name .. "sequence", sequence, range)
    local count, count_range = r:u8()
    local index, index_range = r:u8()
    if count == 0 then
        stop("out_of_range")
    end
    local bytes, bytes_range = r:u16()
    local data = r:bytes(bytes)
    if bytes == 0 then
        stop("fragment_empty")
    elseif bytes > 1024 then
        stop("fragment_too_big")
    elseif index > count then
        stop("fragment_id_out_of_range")
    elseif index < count and bytes ~= 1024 then
        stop("middle_fragment_not_full")
    end
    add(tree, name .. "fragment", index, index_range)
    add(tree, name .. "fragments", count + 1, count_range)
    add(tree, name .. "bytes", bytes, bytes_range)
    tree:add(F["frame.data"], data)
    return string.format("fragment %d, %d of %d", sequence, index, count + 1)
end }

frames[18] = { "message", function(r, tree)
    local name = "frame.message."
    local flags, flags_range = r:u8()
    local channel, channel_range = r:u8()
    local number, number_range = r:varint()
    if flags > 3 then
        stop("out_of_range")
    end
    local function length()
        local value, range = r:varint()
        if value > MAX_MESSAGE then
            stop("out_of_range")
        end
        return value, range
    end
    add(tree, name .. "channel", channel, channel_range)
    add(tree, name .. "number", number, number_range)
    tree:add(F[name .. "unordered"], flags_range, flags % 2 == 1)
    local whole, offset
    if flags >= 2 then
        local whole_range, offset_range
        whole, whole_range = length()
        offset, offset_range = length()
        add(tree, name .. "whole", whole, whole_range)
        add(tree, name .. "offset", offset, offset_range)
    end
    local bytes, bytes_range = length()
    if whole and (bytes == 0 or offset > whole or bytes > whole - offset) then
        stop("out_of_range")
    end
    local data = r:bytes(bytes)
    add(tree, name .. "bytes", bytes, bytes_range)
    if data then
        tree:add(F["frame.data"], data)
    end
    return string.format("message %d.%.0f", channel, number)
end }

frames[19] = { "channel_limit", function(r, tree)
    add(tree, "frame.channel_limit.channel", r:u8())
    add(tree, "frame.channel_limit.messages", r:varint())
    add(tree, "frame.channel_limit.bytes", r:varint())
    return "channel limit"
end }

frames[20] = { "ack_frequency", function(r, tree)
    local datagrams, range = r:varint()
    local delay, delay_range = r:varint()
    if datagrams < 1 or datagrams > 64 or delay < 1000 or delay > 1000000 then
        stop("out_of_range")
    end
    add(tree, "frame.ack_frequency.datagrams", datagrams, range)
    add(tree, "frame.ack_frequency.delay_us", delay, delay_range)
    return "ack frequency"
end }

local function of_bytes(name, count)
    return function(r, tree)
        tree:add(F["frame." .. name], r:bytes(count))
        return (name:gsub("%..*", ""):gsub("_", " "))
    end
end
frames[21] = { "path_challenge", of_bytes("path_challenge.bytes", 8) }
frames[22] = { "path_response", of_bytes("path_response.bytes", 8) }
frames[23] = { "reset_token", of_bytes("reset_token.token", 16) }

frames[24] = { "close", function(r, tree)
    local code, range = r:varint32()
    add(tree, "frame.close.code", code, range)
    local bytes = r:u8()
    local reason = r:bytes(bytes)
    if reason then
        tree:add(F["frame.close.reason"], reason, reason:string(ENC_UTF_8))
    end
    return string.format("close %.0f", code)
end }

local ignored = { "ignored", function(r, tree, kind)
    add(tree, "frame.ignored.type", kind, r.tvb(r.at - 1, 1))
    local bytes, range = r:varint()
    add(tree, "frame.ignored.bytes", bytes, range)
    local data = r:bytes(bytes)
    if data then
        tree:add(F["frame.data"], data)
    end
    return "ignored"
end }

-- The frames of a plaintext; returns what they are, for the column.
local function read_frames(r, tree)
    local names, seen = {}, {}
    if r:left() == 0 then
        stop("too_short")
    end
    while r:left() > 0 do
        local from = r.at
        local kind = r:u8()
        local how = frames[kind] or (kind >= 64 and kind <= 127 and ignored)
        if not how then
            stop("bad_type")
        end
        local name = how[1]
        local branch = tree:add(F.frame, r.tvb(from, 1), name)
        branch:add(F["frame.type"], r.tvb(from, 1))
        if kind == 0 then
            while r:left() > 0 and r.tvb(r.at, 1):uint() == 0 do
                r.at = r.at + 1
            end
            add(branch, "frame.padding.bytes", r.at - from, r.tvb(from, r.at - from))
        else
            if how.once and seen[how.once] then
                stop("repeated_frame")
            end
            seen[how.once or 0] = true
            names[#names + 1] = how[2](r, branch, kind)
        end
        branch:set_len(r.at - from)
    end
    return table.concat(names, ", ")
end

-- Parameters ---------------------------------------------------------------------------------------------

-- Names and defaults of those that are numbers, with their ranges.
local NUMBER_PARAMETERS = {
    [2] = { "idle_ms", 15000, 0, 2 ^ 62 },
    [3] = { "largest_block", 0, 0, 2 ^ 62 },
    [4] = { "largest_datagram", 1200, 1200, 65507 },
    [5] = { "max_ack_delay_ms", 20, 0, 1000 },
    [6] = { "credit", 32, 0, 2 ^ 62 },
    [7] = { "receive_buffer", 0, 0, 2 ^ 62 },
    [8] = { "channels", 1, 1, 256 },
    [9] = { "channel_bytes", 131072, 131072, 2 ^ 62 },
    [10] = { "repair_codes", 0, 0, 2 ^ 62 },
    [15] = { "announced_blocks", 32, 32, 255 },
}

-- Returns whether version 1 is among them.
local function read_versions(value, tree)
    local length = value and value:len() or 0
    if length == 0 or length % 4 ~= 0 or length > 32 then
        stop("out_of_range")
    end
    local has_ours = false
    for at = 0, length - 4, 4 do
        tree:add_le(F.versions, value(at, 4))
        has_ours = has_ours or value(at, 4):le_uint() == 1
    end
    return has_ours
end

-- Reads a hello or a welcome; returns the server's id, as text.
local function read_parameters(r, tree, is_hello)
    local seen, count, server, has_ours = {}, 0, nil, false
    while r:left() > 0 do
        local from = r.at
        local id = r:varint()
        local length = r:varint()
        local value_at = r.at
        local value = r:bytes(length)
        local branch = tree:add(F.parameter, r.tvb(from, r.at - from))
        count = count + 1
        if seen[id] then
            stop("repeated_frame")
        elseif count > 64 then
            stop("out_of_range")
        end
        seen[id] = true
        local number = NUMBER_PARAMETERS[id]
        if number then
            local inner = reader(r.tvb, value_at, value_at + length)
            local read, range = inner:varint()
            if inner:left() > 0 then
                stop("trailing_bytes")
            elseif read < number[3] or read > number[4] then
                stop("out_of_range")
            end
            branch:set_text("Parameter: " .. number[1]:gsub("_", " "))
            add(branch, number[1], read, range)
        elseif (is_hello and id == 0) or (not is_hello and id == 14) then
            branch:set_text("Parameter: versions")
            has_ours = read_versions(value, branch)
        elseif id == 1 then
            branch:set_text("Parameter: suites")
            local suites = value and value:len() == 1 and value:uint()
            if not suites or (is_hello and suites % 2 == 0) or (not is_hello and suites > 1) then
                stop("out_of_range")
            end
            branch:add(F.suites, value)
        elseif is_hello and id == 11 then
            branch:set_text("Parameter: roots here")
            if length == 0 or length % 32 ~= 0 or length > 512 then
                stop("out_of_range")
            end
            for at = 0, length - 32, 32 do
                branch:add(F.roots_here, value(at, 32))
            end
        elseif is_hello and id == 12 then
            branch:set_text("Parameter: request")
            if length > 400 then
                stop("out_of_range")
            elseif value then
                branch:add(F.request, value)
            end
        elseif not is_hello and id == 13 then
            branch:set_text("Parameter: server id")
            if length ~= 8 then
                stop("out_of_range")
            end
            branch:add(F.server_id, value)
            server = value:raw()
        else
            branch:set_text("Parameter, unknown: it is ignored")
            add(branch, "unknown_parameter", id)
        end
    end
    if is_hello and not has_ours then
        stop("wrong_version")
    elseif not is_hello and not server then
        stop("out_of_range")
    end
    for id, number in pairs(NUMBER_PARAMETERS) do
        if not seen[id] then
            add(tree, number[1], number[2]):set_generated()
        end
    end
    return server
end

-- Datagrams ----------------------------------------------------------------------------------------------

-- The state of this capture's connections: the first request of each client, servers' ids.
local requests, servers = {}, {}

function haulier.init()
    requests, servers = {}, {}
end

local MODES = { [0] = "open", [1] = "secret", [2] = "token", [0x11] = "secret", [0x12] = "token" }
local REASONS = { "version", "key", "full", "shutting_down", "token_expired", "token_used",
    "wrong_server", "downgrade", "not_accepted" }

-- The protocol id under which the tag of mode open is right.
local function open_id(raw)
    if #raw < 25 then
        return nil
    end
    local crc = little32(raw, #raw - 3)
    local body = raw:sub(1, -5)
    for _, id in ipairs(open_ids) do
        if crc32(id.bytes, body) == crc then
            return id
        end
    end
end

-- The protocol id under which the check of a request or refusal of mode open is right.
local function check_id(raw)
    if #raw < 27 or raw:sub(-12) ~= string.rep("\0", 12) then
        return nil
    end
    local crc = little32(raw, #raw - 15)
    local body = raw:sub(1, -17)
    for _, id in ipairs(open_ids) do
        if crc32(id.bytes, body) == crc then
            return id
        end
    end
end

-- Lengths of the parts of a request of this version, or nil and why it is not one.
local function request_parts(raw)
    if #raw < 19 then
        return nil, "wrong_length"
    end
    local is_ours = little32(raw, 2) == 1
    if #raw ~= 1200 and (is_ours or #raw < 1200) then
        return nil, "wrong_length"
    elseif not is_ours then
        return nil, "wrong_version"
    end
    local mode, cookie, token_low, token_high, hello_low, hello_high = raw:byte(14, 19)
    local token, hello = token_low + token_high * 256, hello_low + hello_high * 256
    local has_token = mode % 16 == 2
    if not MODES[mode] or (token > 0) ~= has_token or token > 640 then
        return nil, "out_of_range"
    elseif cookie ~= 0 and cookie ~= 20 then
        return nil, "out_of_range"
    elseif 19 + cookie + token + hello > 1184 then
        return nil, "truncated"
    end
    return { mode = mode, cookie = cookie, token = token, hello = hello }
end

-- Each dissects a datagram of its kind, and returns what the column says.
local kinds = {}

kinds[0x04] = { "request", function(raw, tvb, tree, pinfo)
    tree:add(F.direction, tvb(0, 1), "client"):set_generated()
    if #raw >= 13 then
        tree:add_le(F.version, tvb(1, 4))
        tree:add(F.client_id, tvb(5, 8))
    end
    local parts, drop = request_parts(raw)
    if not parts then
        stop(drop)
    end
    local client = raw:sub(6, 13)
    requests[client] = requests[client] or { frame = pinfo.number, time = pinfo.abs_ts }
    tree:add(F.mode, tvb(13, 1), MODES[parts.mode])
    tree:add(F.identity, tvb(13, 1), parts.mode >= 16)
    local at = 19
    if parts.cookie > 0 then
        tree:add(F.cookie, tvb(at, parts.cookie))
        at = at + parts.cookie
    end
    if parts.token > 0 then
        tree:add(F.token, tvb(at, parts.token))
        if parts.token >= 5 then
            tree:add_le(F.token_key, tvb(at + 1, 4))
        end
        at = at + parts.token
    end
    local told = string.format("request, %s", MODES[parts.mode])
    tree:add(F.check, tvb(1184, 16))
    if parts.mode ~= 0 then
        tree:add(F.sealed_bytes, tvb(17, 2), parts.hello)
        if parts.hello > 0 then
            tree:add(F.sealed, tvb(at, parts.hello))
        end
        return told
    end
    local id = check_id(raw)
    if not id then
        tree:add_proto_expert_info(E.check)
        stop("bad_check_value")
    end
    tree:add(F.protocol_id, tvb(1184, 16), id.name):set_generated()
    if at + parts.hello < 1184 then
        tree:add(F.padding, tvb(at + parts.hello, 1184 - at - parts.hello))
    end
    local hello = tree:add(haulier, tvb(at, parts.hello), "Hello")
    read_parameters(reader(tvb, at, at + parts.hello), hello, true)
    return told
end }

kinds[0x05] = { "retry", function(raw, tvb, tree)
    if #raw ~= 29 then
        stop(#raw < 29 and "truncated" or "trailing_bytes")
    end
    tree:add(F.to, tvb(1, 8))
    tree:add(F.cookie, tvb(9, 20))
    return "retry"
end }

kinds[0x06] = { "refusal", function(raw, tvb, tree)
    if #raw < 27 then
        stop("truncated")
    end
    tree:add(F.to, tvb(1, 8))
    local code, count = tvb(9, 1):uint(), tvb(10, 1):uint()
    if count > 8 or code < 1 or code > 10 then
        stop("out_of_range")
    elseif #raw ~= 27 + 4 * count then
        stop(#raw < 27 + 4 * count and "truncated" or "trailing_bytes")
    end
    local check = tree:add(F.check, tvb(#raw - 16, 16))
    local is = raw:sub(-16) == string.rep("\0", 16) and "zero" or check_id(raw) and "open" or "sealed"
    check:add(F.check_is, tvb(#raw - 16, 16), is):set_generated()
    if code == 10 then
        if count ~= 3 then
            stop("out_of_range")
        end
        tree:add_le(F.place, tvb(11, 4))
        tree:add_le(F.estimate_ms, tvb(15, 4))
        tree:add_le(F.again_ms, tvb(19, 4))
        return string.format("in line, place %.0f", tvb(11, 4):le_uint())
    end
    tree:add(F.reason, tvb(9, 1), REASONS[code])
    for index = 0, count - 1 do
        tree:add_le(F.versions, tvb(11 + 4 * index, 4))
    end
    return "refusal, " .. REASONS[code]:gsub("_", " ")
end }

-- The rest of a response or of data: frames and tag of mode open, or what is sealed.
local function protected(raw, tvb, tree, header, id)
    if not id then
        if #raw < header + 16 then
            stop("truncated")
        end
        local sealed = #raw - header - 16
        tree:add(F.sealed_bytes, tvb(header - 4, 4), sealed):set_generated()
        if sealed > 0 then
            tree:add(F.sealed, tvb(header, sealed))
        end
        tree:add(F.tag, tvb(header + sealed, 16))
        return "sealed"
    end
    local stops = #raw - 12
    if stops < header then
        stop("truncated")
    end
    tree:add(F.protocol_id, tvb(stops, 12), id.name):set_generated()
    tree:add(F.sender, tvb(stops, 8))
    tree:add(F.tag, tvb(stops, 12))
    return read_frames(reader(tvb, header, stops), tree)
end

kinds[0x07] = { "response", function(raw, tvb, tree, pinfo)
    if #raw < 15 then
        stop("truncated")
    end
    tree:add(F.direction, tvb(0, 1), "server"):set_generated()
    tree:add(F.to, tvb(1, 8))
    tree:add(F.client_id, tvb(1, 8)):set_generated()
    local request = requests[raw:sub(2, 9)]
    if request then
        tree:add(F.response_to, request.frame):set_generated()
        tree:add(F.response_ms, (pinfo.abs_ts - request.time) * 1000):set_generated()
    end
    local welcome_bytes = tvb(9, 2):le_uint()
    if 15 + welcome_bytes > #raw then
        stop("truncated")
    elseif welcome_bytes > 256 then
        stop("out_of_range")
    end
    local id = open_id(raw)
    if welcome_bytes > 0 then
        if id then
            local welcome = tree:add(haulier, tvb(11, welcome_bytes), "Welcome")
            local server = read_parameters(reader(tvb, 11, 11 + welcome_bytes), welcome, false)
            servers[server] = true
        else
            tree:add(F.sealed, tvb(11, welcome_bytes))
        end
    elseif id then
        stop("out_of_range")
    end
    tree:add_le(F.number, tvb(11 + welcome_bytes, 4))
    local told = protected(raw, tvb, tree, 15 + welcome_bytes, id)
    return string.format("response %.0f: %s", tvb(11 + welcome_bytes, 4):le_uint(), told)
end }

kinds[0x08] = { "reset", function(raw, tvb, tree)
    if #raw ~= 17 then
        stop(#raw < 17 and "truncated" or "trailing_bytes")
    end
    tree:add(F.reset_token, tvb(1, 16))
    return "reset"
end }

local data = { "data", function(raw, tvb, tree)
    if #raw < 13 then
        stop("truncated")
    end
    local first = raw:byte(1)
    local from_client = first < 0x0e
    tree:add(F.direction, tvb(0, 1), from_client and "client" or "server")
    tree:add(F.phase, tvb(0, 1), first % 2)
    tree:add(F.to, tvb(1, 8))
    tree:add(from_client and F.server_id or F.client_id, tvb(1, 8)):set_generated()
    tree:add_le(F.number, tvb(9, 4))
    if from_client then
        servers[raw:sub(2, 9)] = true
    end
    local told = protected(raw, tvb, tree, 13, open_id(raw))
    return string.format("data %.0f: %s", tvb(9, 4):le_uint(), told)
end }
for first = 0x0c, 0x0f do
    kinds[first] = data
end

-- One datagram; returns what the column says of it.
local function one(tvb, pinfo, tree)
    local raw = tvb:raw(0, tvb:captured_len())
    local kind = kinds[raw:byte(1)]
    local branch = tree:add(haulier, tvb())
    local name = kind[1]
    if raw:byte(1) == 6 and raw:byte(10) == 10 then
        name = "in_line"
    end
    branch:add(F.kind, tvb(0, 1), name)
    local went_well, told = pcall(kind[2], raw, tvb, branch, pinfo)
    if not went_well then
        if type(told) ~= "table" then
            error(told, 0)
        end
        local reason = told.drop
        branch:add(F.drop, tvb(0, 1), reason):set_generated()
        branch:add_proto_expert_info(E.malformed, "A receiver drops it: " .. reason:gsub("_", " "))
        told = string.format("%s, malformed: %s", name:gsub("_", " "), reason:gsub("_", " "))
    end
    branch:append_text(", " .. told)
    return told
end

-- The size of the datagrams in a train that was captured as one, or that of the only one.
local function divide(raw)
    local first = raw:byte(1)
    if #raw < 19 or not kinds[first] then
        return #raw
    end
    local function is_same(at)
        local other = raw:byte(at)
        local same_kind = other == first or (first >= 12 and other - other % 2 == first - first % 2)
        return same_kind and raw:sub(at + 1, at + 8) == raw:sub(2, 9)
    end
    local size
    local at = 11
    while not size do
        local found = raw:find(raw:sub(2, 9), at, true)
        if not found then
            return #raw
        elseif is_same(found - 1) then
            size = found - 2
        end
        at = found + 1
    end
    for start = 1, #raw, size do
        if not is_same(start) then
            return #raw
        end
    end
    return size
end

function haulier.dissector(tvb, pinfo, tree)
    local length = tvb:captured_len()
    -- Another protocol on the same port, or less captured than was sent.
    if length == 0 or length < tvb:reported_len() or not kinds[tvb(0, 1):uint()] then
        return 0
    end
    local raw = tvb:raw(0, length)
    pinfo.cols.protocol = "haulier"
    local size = divide(raw)
    local told, count = nil, 0
    for at = 0, length - 1, size do
        local said = one(tvb(at, math.min(size, length - at)):tvb(), pinfo, tree)
        told = told or said
        count = count + 1
    end
    if count > 1 then
        tree:add_proto_expert_info(E.train, string.format("%d datagrams were captured as one", count))
        told = string.format("%d datagrams: %s ...", count, told)
    end
    pinfo.cols.info = told
    return length
end

local function is_haulier(raw)
    local first = raw:byte(1)
    if first == 0x04 then
        return request_parts(raw:sub(1, divide(raw))) ~= nil
    elseif first == 0x07 or (first >= 0x0c and first <= 0x0f) then
        if first < 0x0e and first >= 0x0c and servers[raw:sub(2, 9)] then
            return true
        end
        return open_id(raw:sub(1, divide(raw))) ~= nil
    end
    return false
end

haulier:register_heuristic("udp", function(tvb, pinfo, tree)
    local length = tvb:captured_len()
    if length < 25 or length < tvb:reported_len() or not kinds[tvb(0, 1):uint()] then
        return false
    end
    if not is_haulier(tvb:raw(0, length)) then
        return false
    end
    -- What comes after the request is known by its addresses.
    pinfo.conversation = haulier
    return haulier.dissector(tvb, pinfo, tree) > 0
end)

DissectorTable.get("udp.port"):add_for_decode_as(haulier)

-- The wire of the articles -------------------------------------------------------------------------------

local A = {}
local article_fields = {}
local function article_field(kind, name, label, ...)
    A[name] = ProtoField[kind]("haulier_article." .. name, label, ...)
    article_fields[#article_fields + 1] = A[name]
end
article_field("string", "packet", "Packet")
article_field("string", "layer", "Layer")
article_field("uint32", "crc", "Checksum", base.HEX)
article_field("string", "protocol_id", "Protocol id")
for _, name in ipairs({ "chunk", "slice", "slices", "bytes", "sequence", "fragment", "fragments", "ack" }) do
    article_field("uint32", name, name:gsub("^%l", string.upper))
end
article_field("uint32", "ack_bits", "Ack bits", base.HEX)
article_field("uint32", "acked", "Acked")
article_field("bytes", "data", "Data")
article_field("string", "drop", "Dropped by a receiver")
article.fields = article_fields
local article_malformed = ProtoExpert.new("haulier_article.malformed", "Malformed: a receiver drops it",
    expert.group.MALFORMED, expert.severity.ERROR)
article.experts = { article_malformed }

local END_CHECK = "\xe2\xac\x08\x99"

-- Reads bits from the lowest of each byte on.
local Bits = {}
Bits.__index = Bits

function Bits:int(count)
    local value = 0
    for index = 0, count - 1 do
        local byte = self.raw:byte(math.floor(self.at / 8) + 1)
        if not byte then
            stop("truncated")
        end
        value = value + math.floor(byte / 2 ^ (self.at % 8)) % 2 * 2 ^ index
        self.at = self.at + 1
    end
    return value
end

-- The rest of this byte has to be zero; returns the offset of the next one.
function Bits:align()
    while self.at % 8 ~= 0 do
        if self:int(1) ~= 0 then
            stop("nonzero_padding")
        end
    end
    return self.at / 8
end

local function ends(raw, at)
    if #raw < at + 4 then
        stop("truncated")
    elseif raw:sub(at + 1, at + 4) ~= END_CHECK then
        stop("bad_check")
    elseif #raw > at + 4 then
        stop("trailing_bytes")
    end
end

local function add_data(tree, tvb, at, count)
    if count > 0 then
        tree:add(A.data, tvb(at, count))
    end
end

local function chunks(raw, tvb, tree)
    local from = setmetatable({ raw = raw, at = 32 }, Bits)
    local head = tvb(4)
    local is_ack = from:int(1) == 1
    local chunk = from:int(16)
    if is_ack then
        local count = from:int(8) + 1
        tree:add(A.packet, head, "ack")
        tree:add(A.chunk, head, chunk)
        tree:add(A.slices, head, count)
        for index = 0, count - 1 do
            if from:int(1) == 1 then
                tree:add(A.acked, head, index)
            end
        end
        ends(raw, from:align())
        return string.format("ack of chunk %d", chunk)
    end
    local index, count = from:int(8), from:int(8) + 1
    if index >= count then
        stop("slice_id_out_of_range")
    end
    local bytes = 1024
    if index == count - 1 then
        bytes = from:int(10) + 1
    end
    local at = from:align()
    if #raw < at + bytes then
        stop("truncated")
    end
    ends(raw, at + bytes)
    tree:add(A.packet, head, "slice")
    tree:add(A.chunk, head, chunk)
    tree:add(A.slice, head, index)
    tree:add(A.slices, head, count)
    tree:add(A.bytes, head, bytes)
    add_data(tree, tvb, at, bytes)
    return string.format("slice %d of %d of chunk %d", index, count, chunk)
end

local function add_acks(from, tree, head)
    local ack, ack_bits = from:int(16), from:int(32)
    tree:add(A.ack, head, ack)
    tree:add(A.ack_bits, head, ack_bits)
    tree:add(A.acked, head, ack):set_generated()
    for bit = 1, 32 do
        if math.floor(ack_bits / 2 ^ (bit - 1)) % 2 == 1 then
            tree:add(A.acked, head, (ack - bit) % 65536):set_generated()
        end
    end
end

local function packets(raw, tvb, tree)
    local from = setmetatable({ raw = raw, at = 32 }, Bits)
    local head = tvb(4)
    local sequence = from:int(16)
    local kind = from:int(2)
    if kind == 0 then
        local index, count = from:int(8), from:int(8) + 1
        local at = from:align()
        local bytes = #raw - at
        if bytes == 0 then
            stop("fragment_empty")
        elseif bytes > 1024 then
            stop("fragment_too_big")
        elseif index >= count then
            stop("fragment_id_out_of_range")
        elseif index < count - 1 and bytes ~= 1024 then
            stop("middle_fragment_not_full")
        end
        tree:add(A.packet, head, "fragment")
        tree:add(A.sequence, head, sequence)
        tree:add(A.fragment, head, index)
        tree:add(A.fragments, head, count)
        tree:add(A.bytes, head, bytes)
        add_data(tree, tvb, at, bytes)
        return string.format("fragment %d of %d of packet %d", index, count, sequence)
    elseif kind == 1 then
        tree:add(A.packet, head, "payload")
        tree:add(A.sequence, head, sequence)
        if from:int(1) == 1 then
            add_acks(from, tree, head)
        end
        local at = from:align()
        local bytes = #raw - at - 4
        if bytes < 0 then
            stop("truncated")
        end
        ends(raw, at + bytes)
        tree:add(A.bytes, head, bytes)
        add_data(tree, tvb, at, bytes)
        return string.format("payload %d", sequence)
    elseif kind == 2 then
        if sequence ~= 0 then
            stop("out_of_range")
        end
        tree:add(A.packet, head, "acks")
        add_acks(from, tree, head)
        ends(raw, from:align())
        return "acks"
    end
    stop("bad_type")
end

article:register_heuristic("udp", function(tvb, pinfo, tree)
    local length = tvb:captured_len()
    if length < 5 or length > 1200 or length < tvb:reported_len() then
        return false
    end
    local raw = tvb:raw(0, length)
    local crc, body = little32(raw, 1), raw:sub(5)
    local function right(ids)
        for _, id in ipairs(ids) do
            -- Four zero bytes are in the place of the checksum: the upper half of an id of 8 bytes.
            if crc32(id.bytes, body) == crc then
                return id
            end
        end
    end
    local id, read, layer = right(chunk_ids), chunks, "chunks"
    if not id then
        id, read, layer = right(packet_ids), packets, "packets"
    end
    if not id then
        return false
    end
    pinfo.cols.protocol = "article"
    local branch = tree:add(article, tvb())
    branch:add_le(A.crc, tvb(0, 4))
    branch:add(A.protocol_id, tvb(0, 4), "0x" .. id.name:sub(-8)):set_generated()
    branch:add(A.layer, tvb(0, 4), layer):set_generated()
    local went_well, told = pcall(read, raw, tvb, branch)
    if not went_well then
        if type(told) ~= "table" then
            error(told, 0)
        end
        branch:add(A.drop, tvb(0, 4), told.drop):set_generated()
        branch:add_proto_expert_info(article_malformed, "A receiver drops it: " .. told.drop:gsub("_", " "))
        told = "malformed: " .. told.drop:gsub("_", " ")
    end
    branch:append_text(", " .. told)
    pinfo.cols.info = told
    return true
end)
