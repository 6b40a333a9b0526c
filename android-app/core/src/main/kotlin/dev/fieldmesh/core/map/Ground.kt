package dev.fieldmesh.core.map

/** What a map shows, in the order in which it lies on each other. */
enum class Ground {
    GREEN,
    WATER,
    STREAM,
    BUILDING,
    BORDER,
    WAY, // for feet and tractors
    RAIL,
    MINOR,
    MAJOR,
    HIGHWAY,
    ;

    companion object {
        /**
         * What a feature is by Protomaps' basemap (docs.protomaps.com/basemaps/layers) and by OpenMapTiles
         * (openmaptiles.org/schema); null if it is not drawn.
         */
        fun of(layer: String, feature: Layer.Feature): Ground? = when (layer) {
            "landuse", "landcover", "natural", "park" ->
                GREEN.takeIf { feature.type == Geometry.POLYGONS && kind(feature) in GREENS }
            "water", "waterway" -> when (feature.type) {
                Geometry.POLYGONS -> WATER
                Geometry.LINES -> STREAM
                else -> null
            }
            "buildings", "building" -> BUILDING.takeIf { feature.type == Geometry.POLYGONS }
            "boundaries", "boundary" -> BORDER.takeIf { feature.type == Geometry.LINES }
            "roads", "transit", "transportation" -> ROADS[kind(feature)].takeIf { feature.type == Geometry.LINES }
            else -> null
        }

        /** The name that stands on a map, in one line: of a place, or of a road. */
        fun nameOf(layer: String, feature: Layer.Feature): String? {
            if (layer !in PLACES && (layer !in NAMED_ROADS || kind(feature) !in ROADS)) return null
            return feature.text("name")?.filterNot(Char::isISOControl)?.take(NAME_MOST)?.ifBlank { null }
        }

        fun isPlace(layer: String) = layer in PLACES

        /** The second is of Protomaps before 2024, the third of OpenMapTiles. */
        private fun kind(feature: Layer.Feature) =
            listOf("kind", "pmap:kind", "class").firstNotNullOfOrNull(feature::text)

        private const val NAME_MOST = 80
        private val PLACES = setOf("places", "place")
        private val NAMED_ROADS = setOf("roads", "transportation_name")
        private val GREENS = setOf(
            "allotments", "cemetery", "farmland", "forest", "garden", "golf_course", "grass", "grassland", "meadow",
            "national_park", "nature_reserve", "orchard", "park", "pitch", "protected_area", "recreation_ground",
            "scrub", "village_green", "vineyard", "wetland", "wood",
        )
        private val ROADS = mapOf(
            "highway" to HIGHWAY, "motorway" to HIGHWAY, "trunk" to HIGHWAY,
            "major_road" to MAJOR, "medium_road" to MAJOR, "primary" to MAJOR, "secondary" to MAJOR,
            "tertiary" to MAJOR,
            "minor_road" to MINOR, "minor" to MINOR, "service" to MINOR, "raceway" to MINOR, "busway" to MINOR,
            "path" to WAY, "track" to WAY, "other" to WAY,
            "rail" to RAIL, "transit" to RAIL,
        )
    }
}
