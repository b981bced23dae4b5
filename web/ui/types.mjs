// SPDX-License-Identifier: MIT
// types.mjs [--check]: makes src/openapi.ts, the types of what the server answers, from web/openapi.json. --check: fails
// where it is not what the document makes. Called by scripts/web; the result is committed.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const document = JSON.parse(fs.readFileSync(path.join(here, "..", "openapi.json"), "utf8"));
const nameOf = ($ref) => $ref.replace("#/components/schemas/", "");
const key = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));
const union = (parts) => [...new Set(parts)].join(" | ");
const listed = (type) => (/[|&{]/.test(type) ? `(${type})[]` : `${type}[]`);

function objectType(schema, indent) {
    const inner = `${indent}    `;
    const lines = Object.entries(schema.properties ?? {}).map(([name, of]) => {
        const about = of.description === undefined ? "" : ` // ${of.description.replace(/\s+/g, " ")}`;
        return `${inner}${key(name)}${schema.required?.includes(name) ? "" : "?"}: ${typeOf(of, inner)};${about}`;
    });
    const others = schema.additionalProperties;
    if (lines.length === 0) return `Record<string, ${others === undefined || others === true || others === false ? "unknown" : typeOf(others, indent)}>`;
    if (others !== undefined && typeof others === "object") lines.push(`${inner}[name: string]: ${typeOf(others, inner)};`);
    return `{\n${lines.join("\n")}\n${indent}}`;
}

function typeOf(schema, indent = "") {
    if (schema.$ref !== undefined) return nameOf(schema.$ref);
    if (schema.enum !== undefined) return union(schema.enum.map((one) => JSON.stringify(one)));
    if (schema.anyOf !== undefined || schema.oneOf !== undefined) return union((schema.anyOf ?? schema.oneOf).map((one) => typeOf(one, indent)));
    if (schema.allOf !== undefined) return schema.allOf.map((one) => typeOf(one, indent)).join(" & ");
    if (Array.isArray(schema.type)) return union(schema.type.map((type) => typeOf({ ...schema, type }, indent)));
    switch (schema.type) {
        case "integer": case "number": return "number";
        case "string": case "boolean": case "null": return schema.type;
        case "array": return listed(schema.items === undefined ? "unknown" : typeOf(schema.items, indent));
        case "object": return objectType(schema, indent);
        default: return schema.properties === undefined ? "unknown" : objectType(schema, indent);
    }
}

const schemas = Object.entries(document.components.schemas).map(([name, schema]) => {
    const about = schema.description === undefined ? "" : `/* ${schema.description.replace(/\s+/g, " ")} */\n`;
    const type = typeOf(schema);
    return `${about}${type.startsWith("{") ? `export interface ${name} ${type}` : `export type ${name} = ${type};`}`;
});
const filters = Object.keys(document.components.parameters.filters.schema.properties);
const text = `// SPDX-License-Identifier: MIT
// openapi.ts: what the server answers, made by types.mjs from web/openapi.json: change that, and run scripts/web.

${schemas.join("\n\n")}

export type FilterName =
${filters.map((name) => `    | ${JSON.stringify(name)}`).join("\n")};
`;

const file = path.join(here, "src", "openapi.ts");
if (process.argv[2] === "--check") {
    if (!fs.existsSync(file) || fs.readFileSync(file, "utf8") !== text) {
        console.error("web/ui/src/openapi.ts is not what web/openapi.json makes: run scripts/web and commit it");
        process.exit(1);
    }
} else {
    fs.writeFileSync(file, text);
}
