/** The definition of a version as text, to read and copy. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { ButtonRow, LinkButton } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy.tsx';
import { Editor } from '../../components/later.tsx';
import { Panel } from '../../components/page.tsx';
import { hrefOf } from '../../lib/address.ts';
import { definitionText } from './drafts.ts';

export function DefinitionTab({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { allowed } = useEngine();
  const text = definitionText(sequence, sequence.version);
  return (
    <Panel
      title="Definition"
      actions={
        <ButtonRow>
          {allowed.publish && (
            <LinkButton href={hrefOf('/sequences/new', { from: sequence.id })}>
              Create new version
            </LinkButton>
          )}
          <CopyButton text={text} label="Copy the definition" />
        </ButtonRow>
      }
    >
      <Editor
        label={`Definition of ${sequence.name}, version ${sequence.version}`}
        value={text}
        isReadOnly
      />
    </Panel>
  );
}
