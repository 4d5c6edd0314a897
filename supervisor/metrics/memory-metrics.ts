/** Metrics of the memory budgets; without one they have no samples. */
import type { BudgetStatus } from '../budget/memory-budget.js';
import type { HouseMetric, MetricFacts } from './house-metric.js';
import type { Measured } from './measured.js';

export const MEMORY_METRICS: readonly HouseMetric[] = [
  {
    name: 'banana_memory_budget_bytes',
    type: 'gauge',
    labels: ['pool'],
    help: 'Memory that workers may use, of the machine (memory) or of a GPU.',
    measure: ofBudgets(({ pools }) =>
      pools.map(({ name, budgetBytes }) => ({ labels: { pool: name }, value: budgetBytes })),
    ),
  },
  {
    name: 'banana_memory_budget_used_bytes',
    type: 'gauge',
    labels: ['pool'],
    help: 'Memory that workers and spare processes use of a budget.',
    measure: ofBudgets(({ pools }) =>
      pools.map(({ name, usedBytes }) => ({ labels: { pool: name }, value: usedBytes })),
    ),
  },
  {
    name: 'banana_start_memory_bytes',
    type: 'gauge',
    labels: ['model', 'version', 'pool'],
    help: "Memory that the start of a model's first worker was found to take.",
    measure: ofBudgets(({ startCosts }) =>
      startCosts.flatMap(({ model, pool, firstBytes }) => {
        const at = model.lastIndexOf('@');
        const labels = { model: model.slice(0, at), version: model.slice(at + 1), pool };
        return firstBytes === null ? [] : [{ labels, value: firstBytes }];
      }),
    ),
  },
  {
    name: 'banana_memory_evictions_total',
    type: 'counter',
    labels: ['reason'],
    help: 'Processes that left to free memory: idle workers (memory), busy ones whose turn was over (turn), and spares.',
    measure: ofBudgets(({ sentAway }) =>
      Object.entries(sentAway).map(([reason, value]) => ({ labels: { reason }, value })),
    ),
  },
];

function ofBudgets(measure: (status: BudgetStatus) => readonly Measured[]) {
  return ({ memory }: MetricFacts): readonly Measured[] => (memory === null ? [] : measure(memory.status));
}
