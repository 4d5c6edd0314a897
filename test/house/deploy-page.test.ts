/** docs/deploy.md: its YAML can be read, and what it sets are options of this server. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { format } from 'prettier';
import { OPTIONS, OPTION_NAMES, envName } from '../../supervisor/options/table.js';
import { ROOT } from '../helpers/server.js';

const PAGE = readFileSync(`${ROOT}docs/deploy.md`, 'utf8');

const TEMPLATE = `${ROOT}templates/new/Dockerfile.template`;

function blocksOf(language: string): string[] {
  return [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );
}

test('its YAML is that of a pod and of a Compose file', async () => {
  const blocks = blocksOf('yaml');
  assert.deepEqual(
    blocks.map((block) => /^\w+/.exec(block)?.[0]),
    ['spec', 'services'],
  );
  for (const block of blocks) await format(block, { parser: 'yaml' }); // throws if it is no YAML
});

test('each variable BANANA_… on the page is that of an option', () => {
  const known = new Set(OPTION_NAMES.map((name) => envName(name)));
  const named = new Set(PAGE.match(/\bBANANA_[A-Z_]+\b/g));
  named.delete('BANANA_PORT'); // a variable of Kubernetes there, and an option too
  assert.ok(named.size >= 4, [...named].join());
  assert.deepEqual(
    [...named].filter((name) => !known.has(name)),
    [],
  );
});

test('each flag that its sentences name is one of this server', () => {
  const known = new Set<string>(OPTION_NAMES.map((name) => OPTIONS[name].flag));
  const sentences = PAGE.replace(/```[^]*?```/g, '').replace(/`(?:docker|kubectl) [^`]*`/g, '');
  const flags = new Set([...sentences.matchAll(/`(?:[^`]* )?(--[a-z-]+)/g)].map(([, flag = '']) => flag));
  flags.delete('--python'); // of `banana-serve new`
  assert.ok(flags.has('--drain-timeout'));
  assert.deepEqual(
    [...flags].filter((flag) => !known.has(flag)),
    [],
  );
});

test('image and systemd start the server with the same command', () => {
  const [, inImage = ''] =
    /^CMD (\[.*\])$/m.exec(readFileSync(TEMPLATE, 'utf8').replace('{{app}}', 'app.ts')) ?? [];
  const [, inUnit = ''] = /^ExecStart=\/usr\/bin\/(.*)$/m.exec(blocksOf('ini').join()) ?? [];
  assert.deepEqual(JSON.parse(inImage), inUnit.split(' '));
});
