#!/usr/bin/env python3
"""A file by iroh-blobs, from disk to disk: `iroh_peer.py serve FILE STORE ADDR`, which prints a ticket, and
`iroh_peer.py fetch TICKET-FILE STORE TARGET`. No relay and no discovery: the ticket has the address."""
import asyncio
import sys

import iroh
from iroh import iroh_ffi


class Quiet(iroh.AddCallback, iroh.DownloadCallback):
    hash = None

    async def progress(self, event):
        if event.type() == iroh.AddProgressType.ALL_DONE:
            self.hash = event.as_all_done().hash
        if event.type().name == "ABORT":
            sys.exit(f"iroh: {event.as_abort().error}")


async def node(store, addr):
    iroh_ffi.uniffi_set_event_loop(asyncio.get_running_loop())
    options = iroh.NodeOptions(ipv4_addr=addr, node_discovery=iroh.NodeDiscoveryConfig.NONE)
    return await iroh.Iroh.persistent_with_options(store, options)


async def serve(path, store, addr):
    server, added = await node(store, addr), Quiet()
    await server.blobs().add_from_path(path, True, iroh.SetTagOption.auto(), iroh.WrapOption.no_wrap(), added)
    print(added.hash, await server.net().node_id(), addr, flush=True)
    await asyncio.sleep(1e6)


async def fetch(ticket, store, target):
    hash, id, addr = open(ticket).read().split()
    client = await node(store, "0.0.0.0:0")
    server = iroh.NodeAddr(iroh.PublicKey.from_string(id), None, [addr])
    options = iroh.BlobDownloadOptions(iroh.BlobFormat.RAW, [server], iroh.SetTagOption.auto())
    await client.blobs().download(iroh.Hash.from_string(hash), options, Quiet())
    await client.blobs().export(iroh.Hash.from_string(hash), target, iroh.BlobExportFormat.BLOB,
                                iroh.BlobExportMode.TRY_REFERENCE)


asyncio.run({"serve": serve, "fetch": fetch}[sys.argv[1]](*sys.argv[2:]))
