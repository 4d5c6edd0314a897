/** Builds the parts that count and report metrics, as the options say: for scrapes, for the page, for the log, or none. */
import type { RequestObserver } from '../http/request/backend.js';
import type { UnsentAnswers } from '../http/socket/unsent-answers.js';
import { HostReader } from '../machine/host-figures.js';
import { CallCounts } from '../metrics/call-counts.js';
import { MmsLines, serviceLines } from '../metrics/mms-lines.js';
import { MmsEvents } from '../metrics/mms-events.js';
import { ServerMetrics } from '../metrics/server-metrics.js';
import { TorchServeText } from '../metrics/torchserve-text.js';
import type { Model } from '../models/model.js';
import type { ModelObserver } from '../models/model-resources.js';
import type { ServerOptions } from '../options/resolve.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { ServerLogs } from './host/logs.js';
import type { ModelHost } from './host/model-host.js';
import type { ModelAdmin } from './models/admin.js';

export class MetricsParts {
  /** Gets all calls only if metrics or the page are on: that takes about 0.3 us of a call. */
  readonly calls = new CallCounts();
  /** Null: no metrics page. */
  readonly page: ServerMetrics | null;
  readonly observers: readonly Partial<RequestObserver>[];
  readonly modelObservers: readonly ModelObserver<Model>[];
  readonly #events: MmsEvents | null;

  constructor(
    { metrics, cwd, resolved: { options } }: ServerPlan,
    logs: ServerLogs,
    { served, memory }: Pick<ModelHost, 'served' | 'memory'>,
    unsent: UnsentAnswers,
  ) {
    const mode = options.metricsMode;
    const onProblem = (problem: string): void => logs.log.warn(problem);
    const facts = { models: served.registry, unsent, memory };
    const hasTorchServe = metrics !== null && (mode === 'legacy' || mode === 'prometheus');
    const torchServe = hasTorchServe ? new TorchServeText(mode === 'legacy') : null;
    this.page = metrics === null ? null : new ServerMetrics(facts, this.calls, torchServe, onProblem);
    const lines = writesLines(mode) ? new MmsLines((line) => logs.metrics.host.info(line)) : null;
    const listeners = [lines, torchServe].filter((one) => one !== null);
    const intervalMs = options.metricInterval;
    this.#events =
      listeners.length === 0
        ? null
        : new MmsEvents(listeners, { intervalMs, host: new HostReader(cwd), onProblem });
    const calls = metrics !== null || options.page ? this.calls : null;
    this.observers = [calls, this.#events].filter((one) => one !== null);
    this.modelObservers = [this.page, this.#events, linesOfServices(mode, logs, served)].filter(
      (one) => one !== null,
    );
  }

  start(): void {
    this.page?.sampler.start();
    this.#events?.start();
  }

  stop(): void {
    this.page?.sampler.stop();
    this.#events?.stop();
  }
}

function writesLines(mode: ServerOptions['metricsMode']): boolean {
  return mode === 'log' || mode === 'legacy';
}

/** If metrics lines are not wanted, those of custom services go to the debug log. */
function linesOfServices(
  mode: ServerOptions['metricsMode'],
  { log, metrics, format }: ServerLogs,
  served: ModelAdmin,
): ReturnType<typeof serviceLines> | null {
  if (!writesLines(mode) && !log.isLevelEnabled('debug')) return null;
  return serviceLines(({ spec }, worker, line) => {
    const model = served.labelOf(spec);
    const fields = model === '' ? { worker } : { model, worker };
    if (writesLines(mode)) metrics.model.info(line, fields);
    else log.debug(format === 'json' ? fields : {}, line); // a text line ends with its time, as log parsers expect
  });
}
