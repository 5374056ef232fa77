/** A page with one drawing of the dashboard, named by the hash of its address: for tests in a browser. */

import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Button } from '../src/components/button.tsx';
import { DefinitionDiff, FlowGraph, Timeline } from '../src/flow/later.tsx';
import '../src/styles/base.css';
import {
  at,
  attempt,
  bigDefinition,
  EVERY_KIND,
  LATER,
  OUTLINE,
  RUN,
  step,
  treeOf,
} from './flow-samples.ts';

const MANY = {
  definition: {
    blocks: [
      step('start'),
      {
        type: 'loop' as const,
        id: 'poll',
        condition: 'more',
        max_iterations: 100_000,
        body: [step('check')],
      },
    ],
  },
};

const manyAttempts = () =>
  Array.from({ length: 100_000 }, (_, pass) =>
    attempt('check', {
      ...{ id: `try-${pass}`, iteration: `${pass}`, queued_at: at(pass * 1_000) },
      ...{ started_at: at(pass * 1_000 + 200), ended_at: at(pass * 1_000 + 900) },
    }),
  );

function Page({ name }: { readonly name: string }) {
  const [selected, select] = useState<string | null>(null);
  const [updates, update] = useState(0);
  switch (name) {
    case 'kinds':
      return (
        <FlowGraph
          definition={EVERY_KIND}
          label="Every kind"
          onSelect={select}
          selected={selected}
        />
      );
    case 'run':
      return (
        <>
          <Button onClick={() => update(updates + 1)}>Update</Button>
          <output>{selected}</output>
          <FlowGraph
            definition={EVERY_KIND}
            run={{
              ...RUN,
              tree: treeOf(
                OUTLINE,
                Object.fromEntries(
                  RUN.tree.map((node) => [
                    node.block_id,
                    updates === 0 ? node : { ...node, state: 'completed' as const },
                  ]),
                ),
              ),
            }}
            label="A run"
            onSelect={select}
            selected={selected}
          />
        </>
      );
    case 'big':
      return <FlowGraph definition={bigDefinition(2_000)} label="Two thousand blocks" />;
    case 'timeline':
      return (
        <Timeline
          definition={EVERY_KIND}
          run={RUN}
          label="Attempts"
          onSelect={select}
          selected={selected}
        />
      );
    case 'many':
      return <Timeline {...MANY} run={{ tree: [], attempts: manyAttempts() }} label="Many tries" />;
    case 'diff':
      return <DefinitionDiff before={EVERY_KIND} after={LATER} label="What changes" />;
    default:
      throw new Error(`no drawing ${name}`);
  }
}

createRoot(document.getElementById('root')!).render(
  <main>
    <h1>Drawing</h1>
    <Page name={location.hash.slice(1)} />
  </main>,
);
