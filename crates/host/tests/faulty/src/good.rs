//! Components that break no rule, of kinds that the host comes without: what the conformance tests try is possible.

use arrow_schema::{DataType, Field, Schema};
use compflow_api::{
    Clusterer, Clustering, Column, Component, Composer, Description, Embeddings, Error, Evaluation, Evaluator,
    Flags, LoadRequest, Loader, Metric, NoParams, Result, Services, Sets, Shape, Stream, Task, register,
};

use crate::violations::component;

component!(
    clusterer Choosy,
    "choosy",
    "one cluster, and none for what has no weight or no number",
    Flags::ASSIGNS_NONE.and(Flags::USES_WEIGHTS),
    Ok(Self),
    {
        fn columns(&self) -> Vec<String> {
            vec!["id".to_owned(), "height".to_owned()]
        }
    }
);

/// What is kept of every example.
const BYTES: u64 = 64;

impl Clusterer for Choosy {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, .. } = shape;
        Ok(BYTES.saturating_mul(rows as u64))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let rows = task.embeddings.len();
        services.require_memory(self.memory(task.shape(), services)?, "cluster fewer examples")?;
        let (ids, heights) = (task.column("id")?, task.column("height")?);
        let known = |row: usize| row < ids.len().min(heights.len());
        let counts = |row: usize| task.weights.is_none_or(|weights| weights[row] > 0.0);
        let set = |row: usize| if known(row) && counts(row) { vec![0] } else { vec![] };
        let assignments: Sets = (0..rows).map(set).collect();
        Ok(Clustering { assignments, clusters: Sets::singletons(&[0]), ..Clustering::default() })
    }
}

component!(
    composer Middle,
    "middle",
    "the mean, of sets as well",
    Flags::HAS_GRADIENTS.and(Flags::COMPOSES_SETS)
);

impl Composer for Middle {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = (left + right) / 2.0);
        Ok(())
    }

    fn vjp(
        &self,
        _dim: usize,
        _left: &[f32],
        _right: &[f32],
        grad: &[f32],
        grad_left: &mut [f32],
        grad_right: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        for (grad, (left, right)) in grad.iter().zip(grad_left.iter_mut().zip(grad_right)) {
            (*left, *right) = (grad / 2.0, grad / 2.0);
        }
        Ok(())
    }

    fn composes_sets(&self) -> bool {
        true
    }

    fn sets(&self, rows: Embeddings<'_>, sets: &Sets, out: &mut [f32], _services: &Services<'_>) -> Result<()> {
        for (set, out) in sets.iter().zip(out.chunks_exact_mut(rows.dim())) {
            for (at, out) in out.iter_mut().enumerate() {
                *out = set.iter().map(|&row| rows[row as usize][at]).sum::<f32>() / set.len() as f32;
            }
        }
        Ok(())
    }

    fn sets_vjp(
        &self,
        rows: Embeddings<'_>,
        sets: &Sets,
        grad: &[f32],
        grad_rows: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        let dim = rows.dim();
        grad_rows.fill(0.0);
        for (set, grad) in sets.iter().zip(grad.chunks_exact(dim)) {
            for &row in set {
                let to = &mut grad_rows[row as usize * dim..][..dim];
                to.iter_mut().zip(grad).for_each(|(to, grad)| *to += grad / set.len() as f32);
            }
        }
        Ok(())
    }
}

component!(composer Total, "total", "the sum, whatever the order", Flags::IS_ASSOCIATIVE);

impl Composer for Total {
    fn compose(
        &self,
        _dim: usize,
        left: &[f32],
        right: &[f32],
        out: &mut [f32],
        _services: &Services<'_>,
    ) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right);
        Ok(())
    }
}

component!(
    evaluator Spread,
    "spread",
    "how far examples are from the centroids of their sets, and how many have one",
    Flags::NEEDS_EMBEDDINGS,
    Ok(Self),
    {
        fn columns(&self) -> Vec<String> {
            vec!["group".to_owned()]
        }
    }
);

impl Evaluator for Spread {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::distance("spread"), Metric::share("covered")]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (rows, predicted) = (evaluation.rows()?, evaluation.predicted);
        evaluation.column("group")?;
        let centroids = evaluation.clusters.zip(evaluation.centroids);
        let mut clusters: Vec<(&[u32], &[f32])> = Vec::new();
        if let Some((sets, values)) = centroids {
            clusters.extend(sets.iter().zip(values.chunks_exact(rows.dim())));
        }
        let (mut sum, mut covered, mut row) = (0.0, 0, 0);
        rows.pass(&mut |batch| {
            for example in batch.rows() {
                services.check_cancelled()?;
                if let Some((_, centroid)) = clusters.iter().find(|(set, _)| *set == &predicted[row]) {
                    sum += evaluation.space.distance(example, centroid);
                    covered += 1;
                }
                row += 1;
            }
            Ok(())
        })?;
        Ok(vec![sum, f64::from(covered) / predicted.len().max(1) as f64])
    }
}

component!(loader Named, "named", "columns under names of their own, one row in each table, said before it is loaded");

impl Named {
    const COLUMNS: [&str; 2] = ["vec", "labels"];

    fn wanted<'r>(request: &LoadRequest<'r>) -> Result<&'r [(&'r str, &'r str)]> {
        match request.columns.iter().find(|(_, source)| !Self::COLUMNS.contains(source)) {
            Some((name, source)) => Err(Error::column(name, source, "what is made up", Self::COLUMNS)),
            None => Ok(request.columns),
        }
    }
}

impl Loader for Named {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        let columns = Self::wanted(request)?.iter();
        let columns: Vec<(String, bool)> =
            columns.map(|(name, source)| ((*name).to_owned(), *source == "vec")).collect();
        let table = move |row: u8| {
            let column = |is_vector: bool| match is_vector {
                true => Column::Vectors { width: 2, values: vec![f32::from(row), 1.0] },
                false => Column::Integers(vec![row.into()]),
            };
            Ok(columns.iter().map(|(name, is_vector)| (name.clone(), column(*is_vector))).collect())
        };
        Stream::from_tables((0..3).map(table))
    }

    fn describe(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        let dim = Self::wanted(request)?.iter().find(|(name, _)| *name == "embedding").map(|_| 2);
        let field = |name: &str| Field::new(name, DataType::Null, true);
        Description::from_schema(&Schema::new(Self::COLUMNS.map(field).to_vec()), Some(3), dim).map(Some)
    }
}
