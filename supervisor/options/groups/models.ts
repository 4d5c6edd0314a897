/** Options of models, the model store, and Multi Model Server's paths. */
import { NO_URLS, parseAllowedUrls } from '../allowed-urls.js';
import { parseModelName } from '../model-name.js';
import { FILE, FOLDER, choice, serverOption, whole, type SomeOptions } from '../option-spec.js';
import { parseHandler, parseWantedModels } from '../value-forms.js';

export const MODELS = {
  name: serverOption({
    value: '<name>',
    parse: parseModelName,
    unset: "its file's",
    help: 'Name of the model that answers on /, in paths, logs and /status: letters, digits, dots, underscores and hyphens.',
  }),
  modelStore: serverOption({
    ...FOLDER,
    unset: 'no store',
    help: 'Folder of models, each a folder or a file in it, which --models and the management API name by their paths there. Without an app, the server is like Multi Model Server: see docs/models.md.',
  }),
  models: serverOption({
    value: '<which>',
    parse: parseWantedModels,
    unset: 'none',
    repeats: true,
    help: 'Models of the store to load at the start: all, none, or paths in the store, optionally each after another name: digits,cats=zoo/cats. Separated by commas, or given several times.',
  }),
  mmsConfig: serverOption({
    ...FILE,
    unset: 'no file',
    help: 'A config.properties of Multi Model Server. MMS_CONFIG_FILE in the environment takes precedence; without either, config.properties of the current folder is read if no app is named and the folder has no app. See docs/config-properties.md.',
  }),
  defaultWorkers: serverOption({
    ...whole(1, 1024),
    unset: 'at the start one, or one for each GPU; none for models that are registered',
    help: 'Workers of each model of the store that is loaded at the start or registered without a number; they share the GPUs, if any. At the start, --workers and --workers-per-gpu take precedence.',
  }),
  defaultHandler: serverOption({
    value: '<handler>',
    parse: parseHandler,
    unset: 'found by its name',
    help: 'Handler of models of the store that have no manifest, if the registration names none: file, file:function or file:Class.',
  }),
  allowedUrls: serverOption({
    value: '<urls>',
    parse: parseAllowedUrls,
    unset: 'none',
    otherwise: NO_URLS,
    help: 'Beginnings of the web addresses from which models may be downloaded, such as https://models.example.com/zoo/; separated by commas. Anyone who can make the server download a model can make it run code: see docs/security.md.',
  }),
  ping: serverOption({
    ...choice('<what>', ['health', 'always-200']),
    default: 'health',
    help: 'Answer of /ping: health (503 while models want workers and none has one) or always-200, as in Multi Model Server.',
  }),
  mmsExceptionStatus: serverOption({
    ...choice('<status>', ['503', '500']),
    default: '503',
    help: "Status of a failure of the model's code on Multi Model Server's paths: 503, as there, or 500, which load balancers do not mistake for an overloaded server.",
  }),
} as const satisfies SomeOptions;
