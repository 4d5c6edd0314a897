/** Machines with a name server of the test: a silent one, or one with given addresses. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
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

/** A machine on which a name that must be asked for is never found and never refused. */
export async function stallNames(t: TestContext): Promise<StallingNames> {
  const questions: Buffer[] = [];
  const command = await machineAsking(t, (question) => questions.push(question));
  return {
    command,
    untilAsked: (name) =>
      eventually(
        () => questions.some((question) => question.includes(wireName(name))),
        60_000,
        () => `${name} was not looked up`,
      ),
  };
}

/** A `banana-serve` for which `name` has the IPv4 address that `answer` returns at each look-up. Needs `unshare` and `root`. */
export function answerName(t: TestContext, name: string, answer: () => string): Promise<string> {
  return machineAsking(t, (question, reply) => {
    if (!question.includes(wireName(name))) return;
    const end = 12 + wireName(name).length + 1 + 4; // of the first question, behind the head
    const asksForIPv4 = question.readUInt16BE(end - 4) === 1;
    const head = Buffer.from(question.subarray(0, 12));
    head.writeUInt16BE(0x8180, 2); // an answer, without an error
    [1, asksForIPv4 ? 1 : 0, 0, 0].forEach((count, i) => head.writeUInt16BE(count, 4 + 2 * i));
    const record = Buffer.from('c00c00010001000000000004', 'hex'); // that name, for 0 s, four bytes
    const found = asksForIPv4 ? [record, Buffer.from(answer().split('.').map(Number))] : [];
    reply(Buffer.concat([head, question.subarray(12, end), ...found]));
  });
}

/** As in a question: each label stands behind its length. */
function wireName(name: string): Buffer {
  const labels = name.split('.').map((label) => `${String.fromCharCode(label.length)}${label}`);
  return Buffer.from(labels.join(''));
}

type OnQuestion = (question: Buffer, reply: (answer: Buffer) => void) => void;

/** A command that is `banana-serve` on a machine whose name server gets these questions. */
async function machineAsking(t: TestContext, onQuestion: OnQuestion): Promise<string> {
  const { address, close } = await listenSomewhere(onQuestion);
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
  return command;
}

/** On port 53 of an address that no other test has; a name server has no other port. */
async function listenSomewhere(onQuestion: OnQuestion): Promise<{ address: string; close: () => void }> {
  const socket: Socket = createSocket('udp4').on('message', (question: Buffer, from: RemoteInfo) =>
    onQuestion(question, (answer) => socket.send(answer, from.port, from.address)),
  );
  const address = `127.${1 + (process.pid % 250)}.${Math.floor(Math.random() * 250)}.53`;
  socket.bind(53, address);
  await once(socket, 'listening');
  return { address, close: () => socket.close() };
}
