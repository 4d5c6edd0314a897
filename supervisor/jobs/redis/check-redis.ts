/** Looks at a Redis before jobs are kept in it: whether it can be used, and how safe it keeps them. */
import { describeThrown } from '../../../protocol/errors.js';
import type { RedisClient } from './load-packages.js';

/** This Redis cannot be used, now and later. */
export class Unusable extends Error {}

/** The version that the tests run with. */
const TESTED = '7.0';

/** Settings without which an accepted job, or the mark of a begin, may be lost. */
const SAFE = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' } as const;

const LOSS = 'A crash of Redis may lose accepted jobs, and marks of begins: such a job begins a second time';

const OTHER_LAYOUT =
  'it holds jobs of an older version of this server, which this one cannot read: give another database';

/** Returns warnings for the operator. @throws Unusable */
export async function checkRedis(client: RedisClient): Promise<string[]> {
  const info = await client.info('server');
  const valueOf = (name: string): string => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? '';
  const mode = valueOf('redis_mode');
  if (mode === 'cluster' || mode === 'sentinel')
    throw new Unusable(`it runs as a ${mode}; jobs need a standalone Redis`);
  if ((await client.exists('banana:jobs:order')) === 1) throw new Unusable(OTHER_LAYOUT);
  const version = valueOf('redis_version');
  const valkey = valueOf('valkey_version');
  const isTested = version.startsWith(`${TESTED}.`) && valkey === '';
  const found = valkey === '' ? `Redis ${version}` : `Valkey ${valkey}`;
  const untested = `${found} is not tested with this server, Redis ${TESTED} is`;
  return [...(isTested ? [] : [untested]), ...(await unsafeSettings(client))];
}

async function unsafeSettings(client: RedisClient): Promise<string[]> {
  let found: Readonly<Record<string, string>>;
  try {
    found = await client.configGet(Object.keys(SAFE));
  } catch (error) {
    const { message } = describeThrown(error);
    return [
      `the settings of Redis cannot be read (${message}): it must have ${textOf(Object.keys(SAFE))}. ${LOSS}`,
    ];
  }
  const wrong = Object.keys(SAFE).filter((name) => found[name] !== SAFE[name as keyof typeof SAFE]);
  return wrong.length === 0 ? [] : [`Redis must have ${textOf(wrong)}. ${LOSS}`];
}

function textOf(names: readonly string[]): string {
  return names.map((name) => `${name} ${SAFE[name as keyof typeof SAFE]}`).join(', ');
}
