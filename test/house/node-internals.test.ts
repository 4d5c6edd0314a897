/** The private fields of Node that the sources use stand in five files, and this test names those that a new Node lacks. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import Module from 'node:module';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { ROOT } from '../helpers/server.js';

/** Paths of private fields, by the file that uses them and the object of Node that has them. */
const USED = {
  'protocol/wire/light-socket.ts': { 'net.Socket': ['_handle', '_handle.useUserBuffer'] },
  'supervisor/http/socket/node-internals.ts': {
    'net.Socket': [
      '_handle',
      '_handle.fd',
      '_handle.bytesWritten',
      '_handle.writeQueueSize',
      '_handle.reading',
      '_handle.readStart',
      '_handle.readStop',
      '_httpMessage',
      'parser.onIncoming',
      'parser.pause',
      'parser.resume',
      'parser.execute',
      '_paused',
      '_readableState',
      '_readableState.ended',
    ],
    'tls.TLSSocket': ['_parent'],
  },
  'worker/load/typescript-child.cts': { Module: ['_load', 'runMain'] },
  'worker/load/register-packages.ts': {
    Module: ['_resolveFilename', '_load', '_extensions', '_nodeModulePaths'],
  },
  'worker/process/descriptors.ts': { 'net.Socket': ['_handle', '_handle.setBlocking'] },
};

/** Methods that Node documents for streams and deserializers that a program implements. */
const DOCUMENTED = [
  '_readHostObject',
  '_writeHostObject',
  '_write',
  '_writev',
  '_final',
  '_read',
  '_destroy',
];

/** The paths of `wanted` that the objects of this Node do not have. */
function missing(
  objects: Readonly<Record<string, object>>,
  wanted: Readonly<Record<string, readonly string[]>>,
): string[] {
  return Object.entries(wanted).flatMap(([owner, paths]) =>
    paths.filter((path) => !has(objects[owner], path)).map((path) => `${owner} has no ${path} any more`),
  );
}

function has(object: unknown, path: string): boolean {
  const [first = '', ...rest] = path.split('.');
  if (typeof object !== 'function' && (typeof object !== 'object' || object === null)) return false;
  if (!(first in object)) return false;
  return rest.length === 0 || has((object as Record<string, unknown>)[first], rest.join('.'));
}

/** Runs `use` with the server's socket of a request that is not answered yet. */
async function withRequestSocket(use: (socket: Socket) => void): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  try {
    const [{ socket }] = (await once(server, 'request')) as [{ socket: Socket }];
    use(socket);
  } finally {
    client.destroy();
    server.closeAllConnections();
    server.close();
  }
}

test('this Node has each private field that the sources use', async () => {
  await withRequestSocket((socket) => {
    const objects = { 'net.Socket': socket, 'tls.TLSSocket': new TLSSocket(socket), Module };
    const lacks = Object.values(USED).flatMap((wanted) => missing(objects, wanted));
    assert.deepEqual(lacks, []);
  });
});

test('a private field that a Node lacks is named', () => {
  const objects = { 'net.Socket': { _handle: { fd: 1 } } };
  assert.deepEqual(missing(objects, { 'net.Socket': ['_handle', '_handle.fd', '_handle.useUserBuffer'] }), [
    'net.Socket has no _handle.useUserBuffer any more',
  ]);
});

/** Names with a leading underscore that a source declares as members, or reads from an object. */
function privateFieldsIn(file: string): string[] {
  const code = readFileSync(join(ROOT, file), 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*/g, '');
  const names = [...code.matchAll(/(?:\.|\{ |^ +(?:readonly )?)(_[a-z]\w*)(?=\W)/gm)].map(
    ([, name = '']) => name,
  );
  return [...new Set(names)].filter((name) => !DOCUMENTED.includes(name)).sort();
}

test('private fields of Node stand in five files, and this test knows them all', () => {
  const folders = ['protocol', 'supervisor', 'worker'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.c?ts$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
  const found = files.map((file) => [file, privateFieldsIn(file)] as const);
  const known = Object.entries(USED).map(
    ([file, owners]) =>
      [
        file,
        [...new Set(Object.values(owners).flat())].filter((path) => /^_\w+$/.test(path)).sort(),
      ] as const,
  );
  assert.deepEqual(
    Object.fromEntries(found.filter(([, names]) => names.length > 0)),
    Object.fromEntries(known),
  );
});
