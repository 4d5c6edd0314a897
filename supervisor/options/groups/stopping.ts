/** Options of the stop. */
import { parseDurationMs } from '../units.js';
import { DURATION, SECOND, serverOption, type SomeOptions } from '../option-spec.js';

export const STOPPING = {
  drainTimeout: serverOption<number>({
    flag: '--drain-timeout',
    value: DURATION,
    help: "Longest time for a stop. Below Kubernetes' 30s; docker stop waits only 10s by default (use docker stop -t 30).",
    defaultText: '25s',
    default: 25 * SECOND,
    parse: parseDurationMs,
  }),
  drainLag: serverOption<number>({
    flag: '--drain-lag',
    value: DURATION,
    help: 'Time after SIGTERM in which calls are still accepted, while load balancers notice that /readyz answers 503. Ctrl-C: 0.',
    defaultText: '2s',
    default: 2 * SECOND,
    parse: parseDurationMs,
  }),
} as const satisfies SomeOptions;
