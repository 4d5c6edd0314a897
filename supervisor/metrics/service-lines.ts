/** Writes the metrics of custom services as lines in Multi Model Server's form. */
import type { Model } from '../models/model.js';
import { metricLine } from '../observe/metric-line.js';
import type { AppMetric } from '../processes/worker-listener.js';

export class ServiceLines {
  readonly #write: (model: Model, worker: number, line: string) => void;

  constructor(write: (model: Model, worker: number, line: string) => void) {
    this.#write = write;
  }

  ready(): void {}

  died(): void {}

  measured(model: Model, worker: number, metrics: readonly AppMetric[]): void {
    const now = new Date();
    for (const metric of metrics) {
      if (HAS_LEVEL.test(metric.dimensions)) this.#write(model, worker, metricLine(metric, now));
    }
  }
}

/** Metrics of services have this dimension; those of other apps are not written as lines. */
const HAS_LEVEL = /(?:^|\n)Level\n(?:Model|Error)(?:$|\n)/;
