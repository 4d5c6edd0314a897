/** Custom services in a worker process, without a server. */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Call, StartSpec } from '../../../protocol/wire/messages.js';
import { appFolder } from '../../worker/app-folder.js';
import { callWith } from '../../worker/calls.js';
import { WorkerProcess } from './worker-process.js';

/** Files of a service; the one that is named `service.*` has the handler. */
export type ServiceFiles = Readonly<Record<string, string>>;

export class ServiceWorker extends WorkerProcess {
  readonly folder: string;
  readonly app: string;

  constructor(t: TestContext, files: ServiceFiles) {
    super(t);
    this.folder = appFolder(t, files);
    const file = Object.keys(files).find((name) => /(^|\/)service\.\w+$/.test(name)) ?? 'service.js';
    this.app = join(this.folder, file);
  }

  /** Starts a worker, from hello to ready, with a model that the operator declared as a service. */
  async startService(handler = '', spec: Partial<StartSpec> = {}): Promise<void> {
    await this.start(this.app, { model: 'm', service: { handler, modelDir: this.folder }, ...spec });
  }

  /** Why the service cannot start. */
  async failure(handler = ''): Promise<{ code: string; message: string; permanent: boolean }> {
    await this.next('hello');
    this.sendStart(this.app, { model: 'm', service: { handler, modelDir: this.folder } });
    const { message } = await this.next('fatal');
    await this.exit;
    return message;
  }

  /** Sends one call for each of these bodies, all in one batch; their ids are 1, 2, 3 … */
  batch(bodies: readonly string[], fields: Partial<Call> = {}): void {
    const calls = bodies.map((body, i) =>
      callWith({
        id: i + 1,
        requestId: `r${i + 1}`,
        bodyBytes: Buffer.byteLength(body),
        contentType: '',
        ...fields,
      }),
    );
    const inlineBytes = calls.map(({ bodyBytes }) => bodyBytes);
    this.send({ type: 'call', calls, inlineBytes, batch: 1, last: true }, Buffer.from(bodies.join('')));
  }

  /** Status, type, headers and text of the next whole answer. */
  async result(): Promise<{
    status: number;
    phrase: string;
    contentType: string;
    headers: string;
    text: string;
  }> {
    const { message, body } = await this.next('result');
    const { status, phrase, contentType, headers } = message;
    return { status, phrase, contentType, headers, text: body.toString() };
  }
}
