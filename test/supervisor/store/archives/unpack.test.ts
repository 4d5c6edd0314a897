/** Unpacked archives of both formats, and refused archives with their messages. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { ARCHIVE_LIMITS, UnpackingCancelled } from '../../../../supervisor/store/archives/archive-entry.js';
import { unpack } from '../../../../supervisor/store/archives/unpack.js';
import { tgzOf, zipOf, type PackedEntry } from '../../../helpers/archives.js';
import { tableRows } from '../../../helpers/doc-page.js';
import { ROOT } from '../../../helpers/server.js';
import { appFolder } from '../../../worker/app-folder.js';

type Packer = (entries: readonly PackedEntry[]) => Buffer | Promise<Buffer>;

const FORMATS: Readonly<Record<string, Packer>> = { zip: zipOf, tgz: tgzOf };

/** Unpacks these bytes and returns the folder; asserts that nothing is written beside it. */
async function unpacked(
  t: TestContext,
  bytes: Buffer,
  limits: Partial<typeof ARCHIVE_LIMITS> = {},
  signal = new AbortController().signal,
): Promise<string> {
  const folder = appFolder(t, { archive: '' });
  writeFileSync(join(folder, 'archive'), bytes);
  mkdirSync(join(folder, 'model'));
  const file = await open(join(folder, 'archive'));
  try {
    const all = { ...ARCHIVE_LIMITS, ...limits };
    await unpack(file, join(folder, 'model'), signal, all);
    return join(folder, 'model');
  } finally {
    await file.close();
    assert.deepEqual(readdirSync(folder), ['archive', 'model']);
  }
}

function permissions(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8);
}

for (const [format, pack] of Object.entries(FORMATS)) {
  describe(format, () => {
    test('files and folders are unpacked unchanged, for their user only, and stay executable', async (t) => {
      const big = Buffer.alloc(3_000_000, 'weights ');
      const folder = await unpacked(
        t,
        await pack([
          { name: 'service.mjs', content: 'export {};', mode: 0o100666 },
          { name: 'bin/tool', content: '#!/bin/sh', mode: 0o104777 },
          { name: 'data/big.bin', content: big },
          { name: 'empty', content: '' },
          { name: 'folder/', mode: format === 'zip' ? 0o040777 : 0o777 },
        ]),
      );
      assert.deepEqual(readdirSync(folder).sort(), ['bin', 'data', 'empty', 'folder', 'service.mjs']);
      assert.equal(readFileSync(join(folder, 'service.mjs'), 'utf8'), 'export {};');
      assert.ok(readFileSync(join(folder, 'data/big.bin')).equals(big));
      assert.equal(readFileSync(join(folder, 'empty'), 'utf8'), '');
      const modes = ['service.mjs', 'bin/tool', 'bin', 'folder'].map((name) =>
        permissions(join(folder, name)),
      );
      assert.deepEqual(modes, ['600', '700', '700', '700']);
    });

    for (const [name, message] of [
      ['../x', /points outside the archive\.$/],
      ['/tmp/x', /has an absolute path\.$/],
      ['a\\x', /has a backslash in its name\.$/],
      ['C:/x', /has an absolute path\.$/],
    ] as const)
      test(`an entry called ${name} is refused, and nothing is written outside`, async (t) => {
        const bytes = await pack([{ name: 'first' }, { name, content: 'x' }]);
        await assert.rejects(unpacked(t, bytes), { message });
      });

    test('two entries with the same path are refused', async (t) => {
      const bytes = await pack([{ name: 'a' }, { name: 'A' }]);
      await assert.rejects(unpacked(t, bytes), {
        message: 'its entry "A" differs from "a" only in case or accents.',
      });
    });

    test('too many entries are refused', async (t) => {
      const bytes = await pack([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
      await assert.rejects(unpacked(t, bytes, { maxEntries: 2 }), { message: 'it has more than 2 entries.' });
    });

    test('too many bytes are refused while they are unpacked', async (t) => {
      const bytes = await pack([
        { name: 'a', content: Buffer.alloc(1000) },
        { name: 'b', content: Buffer.alloc(1000) },
      ]);
      await assert.rejects(unpacked(t, bytes, { maxBytes: 1500 }), {
        message: 'it unpacks to more than 1500 bytes.',
      });
    });

    test('a zip bomb is refused before it is written, and the same content in a small file is accepted', async (t) => {
      const bytes = await pack([{ name: 'zeros', content: Buffer.alloc(4_000_000) }]);
      await unpacked(t, bytes);
      await assert.rejects(unpacked(t, bytes, { ratioCountsFromBytes: 1_000_000 }), {
        message: 'it may be a zip bomb: it unpacks to more than 100 times its size.',
      });
    });

    test('an archive that is truncated anywhere is refused', async (t) => {
      const content = Buffer.from(Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 251));
      const bytes = await pack([
        { name: 'a', content },
        { name: 'b', content },
      ]);
      for (const kept of [4, 100, bytes.length >> 1, bytes.length - 30, bytes.length - 1])
        await assert.rejects(
          unpacked(t, bytes.subarray(0, kept)),
          { message: /^it is cut off or damaged: / },
          `${kept}`,
        );
    });

    test('folders that only occur in names count as entries, and their depth is limited', async (t) => {
      const bytes = await pack([{ name: 'first/second/a' }, { name: 'first/third/b' }]);
      await unpacked(t, bytes, { maxEntries: 5 });
      await assert.rejects(unpacked(t, bytes, { maxEntries: 4 }), {
        message: 'it has more than 4 entries.',
      });
      const deep = await pack([{ name: `${'d/'.repeat(64)}x` }]);
      await assert.rejects(unpacked(t, deep), { message: /is more than 64 folders deep\.$/ });
    });

    test('an empty archive is refused', async (t) => {
      await assert.rejects(unpacked(t, await pack([])), { message: /^it is (empty|cut off or damaged)/ });
    });

    test('unpacking can be cancelled', async (t) => {
      const bytes = await pack([{ name: 'a', content: 'x' }]);
      await assert.rejects(unpacked(t, bytes, {}, AbortSignal.abort(new UnpackingCancelled('gone'))), {
        message: 'gone',
      });
    });
  });
}

describe('a tar archive', () => {
  for (const [type, message] of [
    ['SymbolicLink', 'its entry "link" is a symbolic link; only files and folders are unpacked.'],
    ['Link', 'its entry "link" is a hard link; only files and folders are unpacked.'],
  ] as const)
    test(`with an entry of the kind ${type} is refused`, async (t) => {
      const bytes = tgzOf([{ name: 'a' }, { name: 'link', type, linkpath: '/etc/passwd' }]);
      await assert.rejects(unpacked(t, bytes), { message });
    });

  for (const type of ['CharacterDevice', 'BlockDevice', 'FIFO'] as const)
    test(`with an entry of the kind ${type} is refused`, async (t) => {
      await assert.rejects(unpacked(t, tgzOf([{ name: 'x', type }])), {
        message: 'its entry "x" is a device, a pipe or a socket; only files and folders are unpacked.',
      });
    });

  test('is limited by all its bytes, even after its end', async (t) => {
    const whole = gunzipSync(tgzOf([{ name: 'a', content: 'x' }]));
    const bytes = gzipSync(Buffer.concat([whole, Buffer.alloc(4_000_000)]));
    await unpacked(t, bytes);
    await assert.rejects(unpacked(t, bytes, { ratioCountsFromBytes: 1_000_000 }), {
      message: /^it may be a zip bomb/,
    });
    await assert.rejects(unpacked(t, bytes, { maxBytes: 3_000_000 }), {
      message: 'it unpacks to more than 3000000 bytes.',
    });
  });

  test('that is compressed twice is refused', async (t) => {
    const bytes = gzipSync(tgzOf([{ name: 'a', content: 'x' }]));
    await assert.rejects(unpacked(t, bytes), { message: 'it is compressed twice.' });
  });

  test('that is truncated inside complete gzip is refused', async (t) => {
    const tar = gzipSync(Buffer.alloc(512, 'no header '));
    await assert.rejects(unpacked(t, tar), { message: /^it is cut off or damaged: / });
  });
});

describe('a zip archive', () => {
  for (const [mode, kind] of [
    [0o120777, 'a symbolic link'],
    [0o020666, 'a device, a pipe or a socket'],
    [0o010666, 'a device, a pipe or a socket'],
  ] as const)
    test(`with an entry that is ${kind} (${mode.toString(8)}) is refused`, async (t) => {
      await assert.rejects(unpacked(t, await zipOf([{ name: 'x', content: '/etc', mode }])), {
        message: `its entry "x" is ${kind}; only files and folders are unpacked.`,
      });
    });

  test('with a wrong checksum is refused', async (t) => {
    const bytes = await zipOf([{ name: 'x', content: 'incompressible?', mode: 0o100644 }]);
    const header = bytes.indexOf('PK\x01\x02');
    bytes.writeUInt32LE((bytes.readUInt32LE(header + 16) ^ 1) >>> 0, header + 16);
    await assert.rejects(unpacked(t, bytes), {
      message: 'it is damaged: the checksum of its entry "x" is wrong.',
    });
  });

  test('that declares too small sizes is refused', async (t) => {
    const bytes = await zipOf([{ name: 'x', content: Buffer.alloc(100_000) }]);
    const header = bytes.indexOf('PK\x01\x02');
    bytes.writeUInt32LE(10, header + 24);
    await assert.rejects(unpacked(t, bytes), {
      message: 'it is cut off or damaged: its entry "x" is larger than it says.',
    });
  });

  test('that declares too large sizes is refused', async (t) => {
    const bytes = await zipOf([{ name: 'x', content: Buffer.alloc(100_000) }]);
    const header = bytes.indexOf('PK\x01\x02');
    bytes.writeUInt32LE(100_001, header + 24);
    await assert.rejects(unpacked(t, bytes), {
      message: 'it is cut off or damaged: its entry "x" is smaller than it says.',
    });
  });

  test('with an encrypted entry, or one with another compression, is refused', async (t) => {
    const bytes = await zipOf([{ name: 'x', content: 'secret' }]);
    const header = bytes.indexOf('PK\x01\x02');
    const encrypted = Buffer.from(bytes);
    encrypted.writeUInt16LE(encrypted.readUInt16LE(header + 8) | 1, header + 8);
    await assert.rejects(unpacked(t, encrypted), { message: 'its entry "x" is encrypted.' });
    const other = Buffer.from(bytes);
    other.writeUInt16LE(93, header + 10);
    await assert.rejects(unpacked(t, other), {
      message: 'its entry "x" is compressed by method 93; only stored and deflated entries are known.',
    });
  });
});

for (const [format, pack] of Object.entries(FORMATS))
  test(`other work has its turn between the entries of a ${format} archive`, async (t) => {
    const bytes = await pack(Array.from({ length: 3200 }, () => ({ name: 'same/', mode: 0o040777 })));
    let [turns, isOver] = [0, false];
    const counted = (async () => {
      for (; !isOver; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    })();
    await unpacked(t, bytes);
    isOver = true;
    await counted;
    assert.ok(turns >= 50, `${turns} turns`);
  });

test('a zip archive that declares too many entries is refused before any is unpacked', async (t) => {
  const bytes = await zipOf(['a', 'b', 'c'].map((name) => ({ name })));
  await assert.rejects(unpacked(t, bytes, { maxEntries: 2 }), { message: 'it has more than 2 entries.' });
});

test('a file that is not an archive is refused', async (t) => {
  const message = 'it is neither a zip archive nor a gzip-compressed tar archive.';
  for (const bytes of [Buffer.alloc(0), Buffer.from('PK'), Buffer.from('#!/bin/sh')])
    await assert.rejects(unpacked(t, bytes), { message });
});

test('docs/archives.md has the limits', () => {
  const rows = tableRows('archives.md', 'What is refused', 'bound').map((row) => row['']);
  const { maxEntries, maxBytes, maxRatio, ratioCountsFromBytes } = ARCHIVE_LIMITS;
  assert.deepEqual(rows.slice(0, 2), [maxEntries.toLocaleString('en'), `${maxBytes / 1024 ** 3} GiB`]);
  assert.equal(rows[3], String(maxRatio));
  const page = readFileSync(`${ROOT}docs/archives.md`, 'utf8');
  assert.ok(page.includes(`once there are ${ratioCountsFromBytes / 1024 ** 2} MiB`));
});
