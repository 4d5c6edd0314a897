import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { test } from 'node:test';
import { planBudgets } from '../../../supervisor/plan/plan-devices.js';

const NONE = { memoryBudget: null, gpuMemoryBudget: null };
const HALF = { share: 0.5 };

test('without an option there is no budget', () => {
  assert.equal(planBudgets(NONE), null);
});

test('a share is one of the memory of the machine, or of its cgroup if that has less', () => {
  const { memoryBytes, gpuBytes } = planBudgets({ ...NONE, memoryBudget: HALF }, 'linux') ?? {};
  const limit = process.constrainedMemory();
  assert.equal(memoryBytes, Math.floor((limit > 0 && limit < totalmem() ? limit : totalmem()) / 2));
  assert.equal(gpuBytes, null);
});

test('a budget that cannot be measured is an error of the operator', () => {
  assert.throws(() => planBudgets({ ...NONE, memoryBudget: HALF }, 'darwin'), {
    code: 'SERVE_CONFIG',
    message: /--memory-budget: only Linux/,
  });
  assert.throws(() => planBudgets({ ...NONE, gpuMemoryBudget: HALF }, 'linux', { PATH: '/nowhere' }), {
    code: 'SERVE_CONFIG',
    message: /nvidia-smi.*was not found/,
  });
});
