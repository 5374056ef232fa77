/** A new sequence or a new version: JSON that is validated while it is typed, beside its diagram. */

import { useQuery } from '@tanstack/react-query';
import type { CreateSequence } from 'durable-workflow-engine-client';
import { useRef, useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { Button } from '../../components/button.tsx';
import { CloseContext } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Editor } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Page, Panel } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { jsonOf } from '../../lib/json-text.ts';
import { definitionText, useDraft } from './drafts.ts';
import { TriedFlow } from './dry-run.tsx';
import { FindingList } from './finding-list.tsx';
import { judge, type Verdict } from './findings.ts';
import { objectDoubt } from './input-form.ts';
import { placesIn, type TextRange } from './places.ts';
import { SAMPLE_TEXT } from './samples.ts';
import styles from './sequences.module.css';
import { StoreDialog } from './store-dialog.tsx';
import { useComplete } from './use-complete.ts';

const TRAIL = [{ href: '/sequences', label: 'Sequences' }];

export default function NewSequence() {
  const [{ from }] = useFilters();
  return from === undefined ? (
    <Writing title="New sequence" draftOf="a new sequence" first={SAMPLE_TEXT} />
  ) : (
    <NewVersion key={from} from={from} />
  );
}

function NewVersion({ from }: { readonly from: string }) {
  const { client } = useEngine();
  const query = useQuery({
    queryKey: ['sequences.get', from, 'next'],
    queryFn: async ({ signal }) => {
      const sequence = await client.sequences.get(from, { signal });
      const { namespace, name } = sequence;
      const { items } = await client.sequences.list(
        { namespace, name, include_definition: false, limit: 1 },
        { signal },
      );
      const version = Math.max(sequence.version, items[0]?.version ?? 0) + 1;
      return { name, text: definitionText(sequence, version) };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (query.data === undefined) {
    return (
      <Page title="New version" trail={TRAIL}>
        <Loaded query={query} height={480}>
          {() => null}
        </Loaded>
      </Page>
    );
  }
  const { name, text } = query.data;
  return <Writing title={`New version of ${name}`} draftOf={from} first={text} />;
}

function Writing(props: {
  readonly title: string;
  /** Identifies the draft. */
  readonly draftOf: string;
  readonly first: string;
}) {
  const { title, draftOf, first } = props;
  const { client, tenant, allowed } = useEngine();
  const draft = useDraft(`${tenant ?? ''} ${draftOf}`, first);
  const [judged, setJudged] = useState<Verdict & { readonly text: string }>();
  const [drawn, setDrawn] = useState<CreateSequence>();
  const [failure, setFailure] = useState<unknown>();
  const [place, setPlace] = useState<TextRange>();
  const [stored, setStored] = useState<CreateSequence>();

  const complete = useComplete();
  const latest = useRef(0);

  async function check(text: string) {
    const definition = jsonOf('The definition', text) as CreateSequence;
    latest.current += 1;
    const asked = latest.current;
    try {
      const verdict = await judge(client, definition);
      // A newer text has been validated, or is about to be.
      if (asked !== latest.current) return [];
      setJudged({ ...verdict, text });
      setFailure(undefined);
      if (verdict.isValid) setDrawn(definition);
      const placeOf = placesIn(text);
      return verdict.findings.map((finding) => ({ ...finding, ...placeOf(finding.path) }));
    } catch (error) {
      if (asked === latest.current) setFailure(error);
      return [];
    }
  }

  const isJudged = judged?.text === draft.text;
  const doubt = objectDoubt(draft.text);
  const isJson = doubt === undefined;
  return (
    <Page
      title={title}
      trail={TRAIL}
      about="The draft is kept while this tab is open."
      actions={
        <>
          <Button disabled={draft.text === first} onClick={draft.drop}>
            Start over
          </Button>
          {allowed.publish && (
            <Button
              kind="primary"
              disabled={!isJudged || !judged.isValid}
              onClick={() => setStored(jsonOf('The definition', draft.text) as CreateSequence)}
            >
              Review and publish
            </Button>
          )}
        </>
      }
    >
      <div className={`${styles.columns} ${styles.halves}`}>
        <Panel title="Definition">
          <div className={styles.editor}>
            <Editor
              label="Definition as JSON"
              value={draft.text}
              onChange={draft.write}
              check={check}
              complete={complete}
              place={place}
            />
          </div>
          <FindingList
            doubt={doubt}
            verdict={isJudged ? judged : undefined}
            onChoose={({ path }) => setPlace(placesIn(draft.text)(path))}
          />
          {failure !== undefined && (
            <ErrorBox error={failure} {...(isJson && { onRetry: () => void check(draft.text) })} />
          )}
        </Panel>
        <Panel
          title="Flow"
          actions={
            isJudged &&
            !judged.isValid &&
            drawn && <span className="dim small">Last valid definition</span>
          }
        >
          {drawn === undefined ? (
            <p className="dim" aria-busy={!isJudged && isJson && failure === undefined}>
              The diagram appears once the definition is valid.
            </p>
          ) : (
            <TriedFlow definition={drawn} isCurrent={isJudged && judged.isValid} />
          )}
        </Panel>
      </div>
      <CloseContext value={() => setStored(undefined)}>
        {stored && <StoreDialog definition={stored} onStored={draft.drop} />}
      </CloseContext>
    </Page>
  );
}
