/** Saved views, the choice of columns, and the export, in the line above the list of instances. */

import { X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { Button, IconButton } from '../../components/button.tsx';
import { Form, TextField } from '../../components/field.tsx';
import { Menu } from '../../components/menu.tsx';
import { Popover } from '../../components/popover.tsx';
import { useKept } from '../../lib/kept.ts';
import { COLUMN_NAMES } from './columns.tsx';
import styles from './instances.module.css';
import { COLUMNS_MAX, METADATA, viewsIn } from './views.ts';

export function ViewTools(props: {
  readonly columns: readonly string[];
  /** Members of the metadata of the rows shown. */
  readonly members: readonly string[];
  readonly onColumns: (columns: readonly string[]) => void;
  readonly isCompact: boolean;
  readonly onCompact: (isCompact: boolean) => void;
  /** The query string that a new view keeps. */
  readonly search: string;
  readonly onExport: (kind: ExportKind) => void;
}) {
  const { columns, members, onColumns } = props;
  const chosen = columns.filter((key) => key.startsWith(METADATA));
  const offered = [
    ...COLUMN_NAMES,
    ...[...new Set([...members.map((name) => `${METADATA}${name}`), ...chosen])].map(
      (key) => [key, key] as const,
    ),
  ];
  return (
    <>
      <Popover label="Views">
        <Views search={props.search} />
      </Popover>
      <Popover label="Columns">
        <ul className={styles.choices}>
          {offered.map(([key, label]) => {
            const isShown = columns.includes(key);
            return (
              <li key={key}>
                <label>
                  <input
                    type="checkbox"
                    checked={isShown}
                    disabled={!isShown && columns.length >= COLUMNS_MAX}
                    onChange={() =>
                      onColumns(
                        isShown ? columns.filter((other) => other !== key) : [...columns, key],
                      )
                    }
                  />
                  {label}
                </label>
              </li>
            );
          })}
          <li className={styles.apart}>
            <label>
              <input
                type="checkbox"
                checked={props.isCompact}
                onChange={() => props.onCompact(!props.isCompact)}
              />
              Compact rows
            </label>
          </li>
        </ul>
      </Popover>
      <Menu
        label="Export"
        items={[
          { label: 'CSV', onChoose: () => props.onExport('csv') },
          { label: 'Ids', onChoose: () => props.onExport('ids') },
        ]}
      />
    </>
  );
}

export type ExportKind = 'csv' | 'ids';

function Views({ search }: { readonly search: string }) {
  const [views, keep] = useKept('views of instances', viewsIn);
  const [name, setName] = useState('');
  const save = () => {
    const title = name.trim();
    if (title === '') return;
    keep([...views.filter((view) => view.name !== title), { name: title, search }]);
    setName('');
  };
  return (
    <>
      {views.length > 0 && (
        <ul className={styles.views} aria-label="Saved views">
          {views.map((view) => (
            <li key={view.name}>
              <Link href={`/instances?${view.search}`}>{view.name}</Link>
              <IconButton
                label={`Delete the view ${view.name}`}
                icon={X}
                onClick={() => keep(views.filter((other) => other !== view))}
              />
            </li>
          ))}
        </ul>
      )}
      <div className={styles.save}>
        <Form onSubmit={save}>
          <TextField
            label="Save these filters and columns as"
            value={name}
            onChange={setName}
            hint="In this browser. Its address can be shared."
          />
          <Button submits>Save</Button>
        </Form>
      </div>
    </>
  );
}
