/**
 * Preloaded into a front and its workers, whose memory is compared over time: SIGUSR2 collects garbage.
 * V8's young generation is grown to its full size at once. It would grow anyway, in steps of up to 16 MB at times of
 * its own choosing, and look like a leak.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** This is more than the young generation holds, so it doubles each time until it is at its limit. */
const SURVIVORS = 500_000;
const ROUNDS = 8;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
let survivors: object[] = [];
for (let i = 0; i < ROUNDS; i += 1) survivors = Array.from({ length: SURVIVORS }, (_, n) => ({ n }));
survivors.length = 0;
collect();
process.on('SIGUSR2', () => collect());
