/** A Redis that keeps jobs as safely as docs/jobs.md asks for, and its own counts of its work. */
import { createClient } from 'redis';
import { RedisServer } from '../../test/processes/worker/api/store/redis-server.js';
import type { Bench } from '../case.js';

/** Since the start of Redis. */
export interface RedisUse {
  /** Commands, those of scripts included. */
  readonly commands: number;
  readonly scripts: number;
  readonly inBytes: number;
  readonly outBytes: number;
  readonly cpuSeconds: number;
}

export interface BenchRedis {
  readonly url: string;
  use(): Promise<RedisUse>;
  /** Number of jobs that have ended and are kept, of all queues. */
  ended(): Promise<number>;
}

export async function startBenchRedis(bench: Bench, folder: string): Promise<BenchRedis> {
  const redis = await RedisServer.start('--dir', folder, '--appendonly', 'yes', '--appendfsync', 'always');
  const url = `redis://127.0.0.1:${redis.port}`;
  const client = createClient({ url });
  await client.connect();
  bench.keep({
    stop: async () => {
      client.destroy();
      await redis.down();
    },
  });
  const ended = async (): Promise<number> => {
    const queues = await client.sMembers('banana:queues');
    const sets = queues.flatMap((queue) => [`banana:${queue}:completed`, `banana:${queue}:failed`]);
    const sizes = await Promise.all(sets.map((key) => client.zCard(key)));
    return sizes.reduce((sum, size) => sum + size, 0);
  };
  return { url, use: async () => useFrom(await client.info('everything')), ended };
}

/** The work for each of `count` jobs. */
export function textOf(before: RedisUse, after: RedisUse, count: number): string {
  const each = (name: keyof RedisUse, digits = 0): string =>
    ((after[name] - before[name]) / count).toFixed(digits);
  const cpuMs = (((after.cpuSeconds - before.cpuSeconds) / count) * 1000).toFixed(2);
  return (
    `each takes ${each('scripts', 1)} scripts of Redis, ${each('commands')} commands in all, ${each('inBytes')} bytes ` +
    `to Redis, ${each('outBytes')} from it, and ${cpuMs} ms of its CPU`
  );
}

function useFrom(info: string): RedisUse {
  const value = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  const calls = new Map(
    [...info.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]),
  );
  const commands = [...calls.values()].reduce((sum, count) => sum + count, 0);
  return {
    commands,
    scripts: (calls.get('evalsha') ?? 0) + (calls.get('eval') ?? 0),
    inBytes: value('total_net_input_bytes'),
    outBytes: value('total_net_output_bytes'),
    cpuSeconds: value('used_cpu_sys') + value('used_cpu_user'),
  };
}
