/** N callers, each with one connection, each asking again as soon as it has its answer. */
import { Samples } from '../statistics.js';
import { Connection, readBuffer } from './connection.js';
import {
  MAX_CONNECTIONS,
  MAX_DURATION_MS,
  MAX_REQUESTS,
  type ClosedPlan,
  type ClosedResult,
} from './plan.js';
import { requestsOf, targetOf } from './request-bytes.js';

/** Resolves when the time or the count is used up and the last answers are in. */
export async function runClosedLoop(plan: ClosedPlan): Promise<ClosedResult> {
  const target = targetOf(plan.request);
  const nextRequest = requestsOf(plan.request);
  const maxRequests = Math.min(plan.maxRequests, MAX_REQUESTS);
  const latencies = new Samples(maxRequests);
  const connections: Connection[] = [];
  const cpuBefore = process.cpuUsage();
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + Math.min(plan.durationMs, MAX_DURATION_MS);
  let sent = 0;
  let ok = 0;
  let failed = 0;

  await new Promise<void>((resolve) => {
    let running = Math.min(plan.connections, MAX_CONNECTIONS);
    const next = (connection: Connection): void => {
      if (sent < maxRequests && performance.now() < endAtMs) {
        sent += 1;
        connection.send(nextRequest());
        return;
      }
      running -= 1;
      if (running === 0) resolve();
    };
    const handlers = {
      onReply(connection: Connection, status: number, latencyMs: number): void {
        if (status === 200) ok += 1;
        else failed += 1;
        latencies.add(latencyMs);
        next(connection);
      },
      onBroken(connection: Connection, wasBusy: boolean): void {
        if (!wasBusy) return; // closed between two requests: the next send connects anew
        failed += 1;
        setTimeout(next, 10, connection); // a server that is gone is not asked without a pause
      },
    };
    const buffer = readBuffer();
    for (let i = running; i > 0; i -= 1) {
      const connection = new Connection(target, handlers, buffer);
      connections.push(connection);
      next(connection);
    }
  });

  const elapsedMs = performance.now() - startedAtMs;
  const cpu = process.cpuUsage(cpuBefore);
  for (const connection of connections) connection.destroy();
  return {
    ok,
    failed,
    elapsedMs,
    latencyMs: latencies.percentiles(),
    bytesRead: connections.reduce((sum, connection) => sum + connection.bytesRead, 0),
    cpuMs: (cpu.user + cpu.system) / 1000,
  };
}
