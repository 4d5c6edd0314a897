/** The sweep: what it asks of Redis, and how often. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobEntries } from '../../../../supervisor/jobs/redis/job-entries.js';
import type { JobMoves } from '../../../../supervisor/jobs/redis/job-moves.js';
import { JobSweep } from '../../../../supervisor/jobs/redis/job-sweep.js';
import type { RedisLink } from '../../../../supervisor/jobs/redis/redis-link.js';

const NOW_MS = 1_000_000;

test('a search of all jobs comes once a second, however many sweeps there are; a lock must be away in it for 2 s', async (t) => {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const asked: string[] = [];
  const lost: string[] = [];
  const found: [stray: string[], from: string][] = [];
  const replies: Record<string, () => unknown> = {
    sweep: () => [[], String(NOW_MS + 1), [], 0],
    search: () => {
      const [stray, from] = found.shift() ?? [[], '-inf'];
      return [stray, [], from, '-inf'];
    },
  };
  const sweep = new JobSweep({
    link: {
      run: (name: string, args: string[]) => {
        asked.push([name, ...(name === 'search' ? args : [])].join(' '));
        return Promise.resolve(replies[name]?.());
      },
    } as unknown as RedisLink,
    front: '0-a',
    moves: {
      move: (id: string) => Promise.resolve(lost.push(id)).then(() => null),
    } as unknown as JobMoves,
    entries: {} as JobEntries,
    retentionMs: 1,
    onDue: () => {},
  });
  // `a` is in the first half of the running jobs, `b` in the second, and gets its lock again.
  found.push([['a', 'mark'], '(7'], [['b', 'mark'], '-inf'], [['a', 'mark'], '(7'], [[], '-inf']);
  for (; nowMs < 4000; nowMs += 20) assert.equal(await sweep.run(NOW_MS), NOW_MS + 1);
  const searches = asked.filter((one) => one.startsWith('search'));
  assert.deepEqual([asked.length - searches.length, lost], [200, ['a']]);
  assert.deepEqual(searches, ['search -inf -inf', 'search (7 -inf', 'search -inf -inf', 'search (7 -inf']);
});
