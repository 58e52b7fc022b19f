//! Blocks as assets: the asset source `haulier://`, and an asset that is a block's bytes.

use std::collections::HashMap;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bevy_app::{App, Plugin};
use bevy_asset::io::{
    AssetReader, AssetReaderError, AssetSourceBuilder, PathStream, Reader, ReaderNotSeekableError,
    STACK_FUTURE_SIZE, SeekableReader,
};
use bevy_asset::{Asset, AssetApp as _, AssetLoader, AssetServer, LoadContext};
use bevy_reflect::TypePath;
use bytes::Bytes;
use futures_lite::io::{AsyncRead, AsyncReadExt as _, AsyncSeek, Cursor};
use stackfuture::StackFuture;

use crate::HaulierBlocks;

/// The asset source `haulier://`: `asset_server.load("haulier://world")` waits until the block with this name
/// has arrived, and is then loaded as any file is. [`block_tag`](crate::block_tag) says which block that is.
///
/// **Add it before `DefaultPlugins`**, as every source of assets: Bevy's `AssetPlugin` fixes them.
///
/// A load may begin before the join. It fails when the connection is left, when the server gives the block
/// up, and while there is no connection any more; loading it again waits again. A block that arrives once
/// more under its name replaces the asset, as a changed file does (`AssetEvent::Modified`).
///
/// Not with [`Delivery`](haulier::Delivery) in chunks: those are the application's to put together, and a
/// load fails at the first of them.
#[derive(Clone, Debug, Default)]
pub struct HaulierAssetPlugin {
    names: HashMap<String, u64>,
}

impl HaulierAssetPlugin {
    /// The name of the block with this tag, for a server that says it in no other way.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>, tag: u64) -> Self {
        self.names.insert(name.into(), tag);
        self
    }
}

impl Plugin for HaulierAssetPlugin {
    fn build(&self, app: &mut App) {
        assert!(
            !app.world().contains_resource::<AssetServer>(),
            "add HaulierAssetPlugin before DefaultPlugins, or before AssetPlugin: that one fixes the \
             sources of assets"
        );
        let blocks = HaulierBlocks::with_names(self.names.clone());
        app.insert_resource(blocks.clone());
        let source = AssetSourceBuilder::new(move || Box::new(BlockSource(blocks.clone())));
        app.register_asset_source("haulier", source);
    }
}

/// A client without assets needs no asset server.
pub(crate) fn register_bytes(app: &mut App) {
    if app.world().contains_resource::<AssetServer>() {
        app.init_asset::<BlockBytes>().register_asset_loader(BlockBytesLoader);
    }
}

/// The asset that is a block's bytes as they are: for a game that reads its world itself. Others bring an
/// [`AssetLoader`] for theirs, as for files.
#[derive(Asset, TypePath, Clone, Debug, PartialEq, Eq)]
pub struct BlockBytes(pub Vec<u8>);

impl Deref for BlockBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Loads [`BlockBytes`], from any source.
#[derive(TypePath, Clone, Copy, Debug, Default)]
pub struct BlockBytesLoader;

impl AssetLoader for BlockBytesLoader {
    type Asset = BlockBytes;
    type Settings = ();
    type Error = io::Error;

    async fn load(
        &self,
        reader: &mut dyn Reader,
        _settings: &(),
        _context: &mut LoadContext<'_>,
    ) -> Result<BlockBytes, io::Error> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).await?;
        Ok(BlockBytes(bytes))
    }
}

/// Reads blocks in the place of files.
struct BlockSource(HaulierBlocks);

impl AssetReader for BlockSource {
    async fn read<'a>(&'a self, path: &'a Path) -> Result<impl Reader + 'a, AssetReaderError> {
        let name = path.to_str().ok_or_else(|| AssetReaderError::NotFound(path.to_owned()))?;
        // Windows writes paths the other way round.
        let name = name.replace('\\', "/");
        let answer = self.0.ask(&name).recv().await;
        let data = answer.map_err(|_| AssetReaderError::NotFound(path.to_owned()))??;
        Ok(BlockReader(Cursor::new(data)))
    }

    async fn read_meta<'a>(&'a self, path: &'a Path) -> Result<impl Reader + 'a, AssetReaderError> {
        Err::<BlockReader, _>(AssetReaderError::NotFound(path.to_owned()))
    }

    async fn read_directory<'a>(
        &'a self,
        path: &'a Path,
    ) -> Result<Box<PathStream>, AssetReaderError> {
        Err(AssetReaderError::NotFound(path.to_owned()))
    }

    async fn is_directory<'a>(&'a self, _path: &'a Path) -> Result<bool, AssetReaderError> {
        Ok(false)
    }
}

/// The bytes of a block, which are not copied before the loader does.
struct BlockReader(Cursor<Bytes>);

impl AsyncRead for BlockReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncSeek for BlockReader {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: io::SeekFrom,
    ) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.0).poll_seek(context, to)
    }
}

impl Reader for BlockReader {
    fn read_to_end<'a>(
        &'a mut self,
        buffer: &'a mut Vec<u8>,
    ) -> StackFuture<'a, io::Result<usize>, STACK_FUTURE_SIZE> {
        let rest = self.0.get_ref().len().saturating_sub(self.0.position() as usize);
        // All of it is here: one allocation, and one copy.
        buffer.reserve_exact(rest);
        StackFuture::from_or_box(self.0.read_to_end(buffer))
    }

    fn seekable(&mut self) -> Result<&mut dyn SeekableReader, ReaderNotSeekableError> {
        Ok(self)
    }
}
