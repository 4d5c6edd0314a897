/**
 * A model that goes from one worker to none and back, 500 times: calls that come to no worker, while it starts, and while it
 * leaves. None may be lost, none may run twice; the first of each time waits for the start of a worker and little more.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchCase } from '../case.js';
import { postOnce } from '../post-once.js';
import { statusOf } from '../servers/banana.js';
import { source } from '../servers/child-server.js';
import { median } from '../statistics.js';

const CYCLES = 500;
const IDLE_MS = 60;
/** Calls beside the first one of each time; the last of them come about when the worker leaves. */
const OTHERS = 8;
const SPREAD_MS = 400;
/** Longest that an answer may take beyond the start of the worker. */
const MAY_ADD_MS = 50;

interface Cycle {
  readonly firstMs: number;
  readonly startMs: number;
}

export const scaleToZero: BenchCase = {
  name: 'scale-to-zero',
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'banana-scale-'));
    const notes = join(folder, 'notes');
    try {
      const server = await bench.startBanana(source('bench/apps/noted.mjs'), {
        workers: null,
        env: { BENCH_NOTES: notes },
        flags: ['--idle-timeout', `${IDLE_MS}ms`],
      });
      let sent = 0;
      const pids = new Set<number>();
      const send = async (): Promise<number> => {
        const n = (sent += 1);
        const sentAtMs = performance.now();
        const { status, text, headAtMs } = await postOnce(server.url, { n });
        if (status !== 200) throw new Error(`call ${n} was lost: ${status} ${text}`);
        pids.add((JSON.parse(text) as { pid: number }).pid);
        return headAtMs - sentAtMs;
      };
      const cycles: Cycle[] = [];
      while (cycles.length < CYCLES) {
        await untilIdle(server.url);
        const others = Array.from({ length: OTHERS }, () => delay(Math.random() * SPREAD_MS).then(send));
        const firstMs = await send();
        const { scaling } = (await statusOf(server.url)).model;
        cycles.push({ firstMs, startMs: scaling?.startMs ?? 0 });
        await Promise.all(others);
      }
      await server.stop();
      const runs = readFileSync(notes, 'utf8').split('\n').slice(0, -1);
      const distinct = new Set(runs).size;
      const firstMs = median(cycles.map((cycle) => cycle.firstMs));
      const startMs = median(cycles.map((cycle) => cycle.startMs));
      bench.note(
        `1 to 0 to 1, ${CYCLES} times, ${pids.size} processes: ${sent} calls, ${runs.length} runs, ${distinct} of them different.`,
      );
      return [
        {
          name: `1 to 0 to 1, ${CYCLES} times under load: calls lost or run twice`,
          ours: `${sent} calls, ${runs.length} runs`,
          baseline: '',
          value: sent - distinct + (runs.length - distinct),
          goal: { must: 0, better: 'lower', unit: '' },
        },
        {
          name: 'first answer at zero, beyond the start of its worker (medians)',
          ours: `${firstMs.toFixed(0)} ms`,
          baseline: `${startMs.toFixed(0)} ms`,
          value: firstMs - startMs,
          goal: { must: MAY_ADD_MS, better: 'lower', unit: 'ms' },
        },
      ];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function untilIdle(url: string): Promise<void> {
  for (;;) {
    const { model } = await statusOf(url);
    if (model.workers.length === 0) return;
    await delay(5);
  }
}
