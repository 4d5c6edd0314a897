/** Options of listeners: addresses and TLS, API keys and CORS, the management API. */
import { parseKeys } from '../api-key.js';
import { DURATION, FILE, HOST, PORT, SWITCH, serverOption, text, type SomeOptions } from '../option-spec.js';
import { parseOrigins, parseTlsListeners, parseTokens } from '../value-forms.js';

const PEM_FILE = text('<path>', 'the path of a PEM file');

export const LISTENING = {
  host: serverOption({
    ...HOST,
    default: '0.0.0.0',
    help: 'Address to listen on. All interfaces, as a container needs; use 127.0.0.1 to keep it to this machine.',
  }),
  port: serverOption({
    ...PORT,
    default: '8000',
    help: 'TCP port, 0 for a free one, or the path of a unix socket (anything with a /). PORT in the environment counts too.',
  }),
  tlsCert: serverOption({
    ...PEM_FILE,
    unset: 'no TLS',
    help: 'PEM file of the TLS certificate, followed by its intermediate certificates; clients then use https. Read at the start only. Needs --tls-key.',
  }),
  tlsKey: serverOption({
    ...PEM_FILE,
    unset: 'no TLS',
    help: "PEM file of the certificate's private key, RSA or EC, not encrypted.",
  }),
  tlsFor: serverOption({
    value: '<listeners>',
    parse: parseTlsListeners,
    default: 'main',
    help: 'Listeners that use TLS, with the same certificate: main, management, metrics, separated by commas. By default the management API does not.',
  }),
  readyFile: serverOption({
    ...FILE,
    unset: 'no file',
    help: 'File that is written once a worker is ready, with the addresses as JSON ({"url":"http://..."}), and removed at the end: for programs that start the server.',
  }),
  page: serverOption({
    ...SWITCH,
    unset: 'the page is there',
    otherwise: true,
    help: 'Leave out the page at /, its data (GET /_k/live) and its samples. page: false in files and programs.',
  }),
  openapiAll: serverOption({
    ...SWITCH,
    help: 'Describe every path in /openapi.json. Off: those of Banana, Potassium, Multi Model Server and the Open Inference Protocol only beside an app of that kind, a model store or a signature; all are served.',
  }),
} as const satisfies SomeOptions;

export const ACCESS = {
  apiKey: serverOption({
    value: '<key>',
    parse: parseKeys,
    unset: 'no key needed',
    secret: true,
    help: 'API key that calls and /status must send; several may be valid at once, separated by commas. Flags are visible in ps for a moment: prefer the environment or a file.',
  }),
  apiKeyFile: serverOption({
    ...FILE,
    unset: 'no file',
    help: 'File of API keys, one per line, valid in addition to those of --api-key; # begins a comment line. Read at the start only.',
  }),
  corsOrigin: serverOption({
    value: '<origin>',
    parse: parseOrigins,
    unset: 'off',
    help: 'Origin whose pages may call from a browser, such as https://app.example.com; several, separated by commas, or * for all. Off: a page of another origin cannot read any reply, and cannot call a server without an API key.',
  }),
  corsMethods: serverOption({
    value: '<methods>',
    parse: (raw) => parseTokens(raw, 'GET, POST').map((method) => method.toUpperCase()),
    unset: "the path's",
    help: 'Methods that pages of other origins may use (Access-Control-Allow-Methods), separated by commas, for every path. No effect without --cors-origin.',
  }),
  corsHeaders: serverOption({
    value: '<names>',
    parse: (raw) => parseTokens(raw, 'Content-Type, X-Request-Id'),
    unset: 'all that a page asks for',
    help: 'Request headers that pages of other origins may send (Access-Control-Allow-Headers), separated by commas. No effect without --cors-origin.',
  }),
} as const satisfies SomeOptions;

export const MANAGEMENT = {
  managementPort: serverOption({
    ...PORT,
    unset: 'off; with --model-store or --models 8081',
    help: "TCP port of the management API, 0 for a free one, or the path of a unix socket (anything with a /). The server's own port serves both on one port.",
  }),
  managementHost: serverOption({
    ...HOST,
    default: '127.0.0.1',
    help: 'Address of the management API. By default only this machine, because anyone who reaches it can run code; any other address needs a key.',
  }),
  managementKey: serverOption({
    value: '<key>',
    parse: parseKeys,
    unset: 'that of --api-key',
    secret: true,
    help: 'Key of the management API, instead of those of --api-key; several may be valid at once, separated by commas. Prefer the environment or a file.',
  }),
  managementInsecure: serverOption({
    ...SWITCH,
    help: 'Allows a management API without a key on an address that other machines reach. Anyone who reaches it can run code here.',
  }),
  unregisterTimeout: serverOption({
    ...DURATION,
    default: '2m',
    help: "Longest time that an unregistration waits for the model's running calls and workers; then it answers 408 while they continue. 0: it does not wait.",
  }),
} as const satisfies SomeOptions;
