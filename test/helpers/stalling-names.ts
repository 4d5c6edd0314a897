/** A machine on which a name that must be asked for is never found and never refused: its name server is silent. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { CLI, eventually } from './server.js';

export interface StallingNames {
  /** A command that is `banana-serve` on such a machine. Needs `unshare` and `root`. */
  readonly command: string;
  /** Resolves once somebody has asked for `name`, and waits. */
  untilAsked(name: string): Promise<void>;
}

export async function stallNames(t: TestContext): Promise<StallingNames> {
  const questions: Buffer[] = [];
  const { address, close } = await listenSomewhere((question) => questions.push(question));
  t.after(close);
  const folder = mkdtempSync(join(tmpdir(), 'banana-names-'));
  t.after(() => rmSync(folder, { recursive: true }));
  // Two minutes and a half: longer than any test, so that one which waits for it fails.
  const resolvers = `nameserver ${address}\noptions timeout:30 attempts:5\n`;
  writeFileSync(join(folder, 'resolv.conf'), resolvers);
  const command = join(folder, 'banana-serve');
  const serve = `exec unshare --mount sh -c 'mount --bind "$0" /etc/resolv.conf && exec "$@"'`;
  writeFileSync(
    command,
    `#!/bin/sh\n${serve} '${folder}/resolv.conf' '${process.execPath}' '${CLI}' "$@"\n`,
    { mode: 0o755 },
  );
  return {
    command,
    untilAsked: (name) => {
      // In a question each label stands behind its length.
      const wanted = Buffer.concat(
        name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`)),
      );
      return eventually(
        () => questions.some((question) => question.includes(wanted)),
        15_000,
        () => `nobody asked for ${name}`,
      );
    },
  };
}

/** On port 53 of an address that no other test has; a name server has no other port. */
async function listenSomewhere(
  onQuestion: (question: Buffer) => void,
): Promise<{ address: string; close: () => void }> {
  const socket = createSocket('udp4').on('message', onQuestion);
  const address = `127.${1 + (process.pid % 250)}.${Math.floor(Math.random() * 250)}.53`;
  socket.bind(53, address);
  await once(socket, 'listening');
  return { address, close: () => socket.close() };
}
