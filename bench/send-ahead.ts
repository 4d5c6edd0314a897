/**
 * Measures the gain of sending calls ahead, by their number: one worker, 32 callers, models of several run times.
 * `node dist/bench/send-ahead.js`; docs/benchmarks.md, "Reasons".
 */
import { LoadGenerator } from './load/client.js';
import { jsonRequest } from './cases/requests.js';
import { measureInTurn, medianOf, type Side } from './rounds.js';
import { compiled, source, startChildServer, type ChildServer } from './servers/child-server.js';

const AHEAD = ['0', '1', '2', '4', '8', '16', '32', 'rule'];
const SPIN_MS = [0, 0.2, 1, 5, 20];

const generator = new LoadGenerator();
console.log(['spin ms', ...AHEAD].map((word) => word.padStart(8)).join(''), '  calls/s');
for (const spinMs of SPIN_MS) {
  const servers = await Promise.all(AHEAD.map((ahead) => startWith(ahead, spinMs)));
  const sides: Side[] = servers.map(({ url }, i) => ({ name: AHEAD[i] as string, url, processes: [] }));
  const load = { request: jsonRequest({}), connections: 32 };
  const results = await measureInTurn(generator, sides, load, { rounds: 3, secondsPerRound: 1 });
  const rates = results.map((rounds) => medianOf(rounds, ({ perSecond }) => perSecond).toFixed(0));
  console.log([String(spinMs), ...rates].map((word) => word.padStart(8)).join(''));
  await Promise.all(servers.map((server) => server.stop()));
}
generator.close();

function startWith(ahead: string, spinMs: number): Promise<ChildServer> {
  const args = [compiled('servers/ahead-main.js'), source('bench/apps/spin.mjs'), ahead];
  return startChildServer(args, { SPIN_MS: String(spinMs) });
}
