/** A server with a fixed number of calls sent ahead: `node ahead-main.js APP NUMBER`, or `rule` for the real rule. */
import { serve } from '../../supervisor/serve.js';

const [app = '', ahead = 'rule'] = process.argv.slice(2);
const internals = ahead === 'rule' ? {} : { sendAhead: () => Number(ahead) };
const server = await serve({ app, host: '127.0.0.1', port: 0, gpus: 'none' }, internals);
process.once('SIGINT', () => {
  void server.close().then(() => process.exit());
});
