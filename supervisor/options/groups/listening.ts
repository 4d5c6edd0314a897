/** Options of listeners: addresses and TLS, API keys and CORS, the management API. */
import { parseHost, parsePort } from '../address.js';
import {
  type TlsListener,
  parsePemPath,
  parseTlsListeners,
  type AllowedOrigins,
  parseOrigins,
  parseTokens,
} from '../value-forms.js';
import { serverOption, type SomeOptions, DURATION, MINUTE } from '../option-spec.js';
import { parseFilePath, parseSwitch, parseDurationMs } from '../units.js';
import { type KeyDigest, parseKeys } from '../api-key.js';

export const LISTENING = {
  host: serverOption<string>({
    flag: '--host',
    value: '<address>',
    help: 'Address to listen on. All interfaces, as a container needs; use 127.0.0.1 to keep it to this machine.',
    defaultText: '0.0.0.0',
    default: '0.0.0.0',
    parse: parseHost,
  }),
  port: serverOption<number | string>({
    flag: '--port',
    value: '<port>',
    help: 'TCP port, 0 for a free one, or the path of a unix socket (anything with a /). PORT in the environment counts too.',
    defaultText: '8000',
    default: 8000,
    parse: parsePort,
  }),
  tlsCert: serverOption<string | null>({
    flag: '--tls-cert',
    value: '<path>',
    help: 'PEM file of the TLS certificate, followed by its intermediate certificates; clients then use https. Read at the start only. Needs --tls-key.',
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsKey: serverOption<string | null>({
    flag: '--tls-key',
    value: '<path>',
    help: "PEM file of the certificate's private key, RSA or EC, not encrypted.",
    defaultText: 'no TLS',
    default: null,
    parse: parsePemPath,
  }),
  tlsFor: serverOption<readonly TlsListener[]>({
    flag: '--tls-for',
    value: '<listeners>',
    help: 'Listeners that use TLS, with the same certificate: main, management, metrics, separated by commas. By default the management API does not.',
    defaultText: 'main',
    default: ['main'],
    parse: parseTlsListeners,
  }),
  readyFile: serverOption<string | null>({
    flag: '--ready-file',
    value: '<path>',
    help: 'File that is written once a worker is ready, with the addresses as JSON ({"url":"http://..."}), and removed at the end: for programs that start the server.',
    defaultText: 'no file',
    default: null,
    parse: parseFilePath,
  }),
  page: serverOption<boolean>({
    flag: '--no-page',
    value: null,
    help: 'Leave out the page at /, its data (GET /_k/live) and its samples. page: false in files and programs.',
    defaultText: 'the page is there',
    default: true,
    parse: parseSwitch,
  }),
  openapiAll: serverOption<boolean>({
    flag: '--openapi-all',
    value: null,
    help: 'Describe every path in /openapi.json. Off: those of Banana, Potassium, Multi Model Server and the Open Inference Protocol only beside an app of that kind, a model store or a signature; all are served.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
} as const satisfies SomeOptions;

export const ACCESS = {
  apiKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--api-key',
    value: '<key>',
    help: 'API key that calls and /status must send; several may be valid at once, separated by commas. Flags are visible in ps for a moment: prefer the environment or a file.',
    defaultText: 'no key needed',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  apiKeyFile: serverOption<string | null>({
    flag: '--api-key-file',
    value: '<path>',
    help: 'File of API keys, one per line, valid in addition to those of --api-key; # begins a comment line. Read at the start only.',
    defaultText: 'no file',
    default: null,
    parse: parseFilePath,
  }),
  corsOrigin: serverOption<AllowedOrigins | null>({
    flag: '--cors-origin',
    value: '<origin>',
    help: 'Origin whose pages may call from a browser, such as https://app.example.com; several, separated by commas, or * for all. Off: a page of another origin cannot read any reply, and cannot call a server without an API key.',
    defaultText: 'off',
    default: null,
    parse: parseOrigins,
  }),
  corsMethods: serverOption<readonly string[] | null>({
    flag: '--cors-methods',
    value: '<methods>',
    help: 'Methods that pages of other origins may use (Access-Control-Allow-Methods), separated by commas, for every path. No effect without --cors-origin.',
    defaultText: "the path's",
    default: null,
    parse: (raw) => parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase()),
  }),
  corsHeaders: serverOption<readonly string[] | null>({
    flag: '--cors-headers',
    value: '<names>',
    help: 'Request headers that pages of other origins may send (Access-Control-Allow-Headers), separated by commas. No effect without --cors-origin.',
    defaultText: 'all that a page asks for',
    default: null,
    parse: (raw) => parseTokens(raw, 'Content-Type, X-Request-Id'),
  }),
} as const satisfies SomeOptions;

export const MANAGEMENT = {
  managementPort: serverOption<number | string | null>({
    flag: '--management-port',
    value: '<port>',
    help: "TCP port of the management API, 0 for a free one, or the path of a unix socket (anything with a /). The server's own port serves both on one port.",
    defaultText: 'off; with --model-store or --models 8081',
    default: null,
    parse: parsePort,
  }),
  managementHost: serverOption<string>({
    flag: '--management-host',
    value: '<address>',
    help: 'Address of the management API. By default only this machine, because anyone who reaches it can run code; any other address needs a key.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  managementKey: serverOption<readonly KeyDigest[] | null>({
    flag: '--management-key',
    value: '<key>',
    help: 'Key of the management API, instead of those of --api-key; several may be valid at once, separated by commas. Prefer the environment or a file.',
    defaultText: 'that of --api-key',
    default: null,
    secret: true,
    parse: parseKeys,
  }),
  managementInsecure: serverOption<boolean>({
    flag: '--management-insecure',
    value: null,
    help: 'Allows a management API without a key on an address that other machines reach. Anyone who reaches it can run code here.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  unregisterTimeout: serverOption<number>({
    flag: '--unregister-timeout',
    value: DURATION,
    help: "Longest time that an unregistration waits for the model's running calls and workers; then it answers 408 while they continue. 0: it does not wait.",
    defaultText: '2m',
    default: 2 * MINUTE,
    parse: parseDurationMs,
  }),
} as const satisfies SomeOptions;
