/** How an app of its own file becomes a server. `index.ts` says how: nothing here may know the supervisor. */

/** Where and how `app.serve()` listens; any other option by the names of docs/options.md. */
export interface PotassiumServeOptions {
  readonly host?: string;
  readonly port?: number;
  readonly [option: string]: unknown;
}

export interface TestRequest {
  readonly json?: unknown;
  readonly data?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
}

export interface TestResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Buffer;
  readonly text: string;
  /** The body as JSON; null if it is none. */
  readonly json: unknown;
}

export interface TestClient {
  readonly url: string;
  post(path: string, request?: TestRequest): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
  /** Stops the server and its workers; nothing of it keeps the process alive. */
  close(): Promise<void>;
}

/** `app`: the file that made it. */
export interface Starter {
  serve(app: string, options: PotassiumServeOptions): Promise<void>;
  testClient(app: string, options: PotassiumServeOptions): Promise<TestClient>;
}

let current: Starter | null = null;

export function setStarter(starter: Starter): void {
  current = starter;
}

export function starter(): Starter {
  if (current === null)
    throw new Error("import Potassium from 'banana-serve': nothing else can start a server");
  return current;
}
