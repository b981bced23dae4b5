-- SPDX-License-Identifier: MIT
-- Joins, window functions, full-text search, JSON, triggers and recursion; `seed` is set before.
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INTEGER);
CREATE TABLE change (id INTEGER PRIMARY KEY, item INTEGER, note TEXT);
CREATE INDEX by_kind ON item (kind, price);
CREATE TRIGGER noted AFTER UPDATE ON item BEGIN
    INSERT INTO change (item, note) VALUES (new.id, printf('%s: %.2f to %.2f', new.name, old.price, new.price));
END;
CREATE VIRTUAL TABLE words USING fts5 (body);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO item SELECT i, printf('item%d', i * 7919 % 4001), i * seed % 977 / 7.0, i % 17 FROM n, setting;
UPDATE item SET price = price * 1.1 WHERE kind IN (SELECT kind FROM item GROUP BY kind HAVING avg(price) > 60);
INSERT INTO words SELECT group_concat(name, ' ') FROM item GROUP BY id % 200;
SELECT count(*), max(rank) FROM words WHERE words MATCH 'item1* OR item2*';
SELECT a.kind, group_concat(a.name), sum(b.price) FROM item a JOIN item b ON b.id = a.id * 3 GROUP BY a.kind;
SELECT name, price, rank() OVER (PARTITION BY kind ORDER BY price) FROM item ORDER BY name COLLATE NOCASE LIMIT 300;
SELECT json_group_array(json_object('name', name, 'price', price)) FROM item WHERE kind < 3;
SELECT json_extract(value, '$.name') FROM json_each((SELECT json_group_array(json_object('name', name)) FROM item));
WITH RECURSIVE path (i, text) AS (SELECT 1, 'a' UNION ALL SELECT i + 1, text || '/' || i FROM path WHERE i < 200)
SELECT max(length(text)) FROM path;
DELETE FROM item WHERE id % 3 = 0;
REINDEX;
VACUUM;
