package dev.fieldmesh.app.screen

import android.view.View
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.app.view.TrackView
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import dev.fieldmesh.device.MapState
import kotlinx.coroutines.CoroutineDispatcher

/** What can be done about the map under the track. */
interface MapActions {
    val unit: SpeedUnit
    val state: MapState

    /** What a person has moved the map to; null: all of the track. */
    var look: Look?

    /** For what would hold up the screen. */
    val worker: CoroutineDispatcher

    fun choose()

    fun remove(button: TextView)
}

/** The way so far on a map, and the marks that the experimenter drops on it. */
class TrackScreen(override val view: View, private val actions: MapActions, private val onMark: (String) -> Unit) :
    Screen {
    private val context = view.context
    private val words: EditText = view.findViewById(R.id.mark_text)
    private val map: TrackView = view.findViewById(R.id.map)

    init {
        for (id in listOf(R.id.mark_bus, R.id.mark_person, R.id.mark_turn)) {
            view.findViewById<TextView>(id).setOnClickListener { onMark((it as TextView).text.toString()) }
        }
        view.findViewById<View>(R.id.mark_drop).setOnClickListener { dropOwn() }
        map.isMovable = true
        map.chosen = actions.look
        map.onChosen = { actions.look = it }
        map.layer.worker = actions.worker
        map.layer.onPainted = ::showMap
        view.findViewById<View>(R.id.map_closer).setOnClickListener { map.zoom(TrackView.STEP) }
        view.findViewById<View>(R.id.map_farther).setOnClickListener { map.zoom(1 / TrackView.STEP) }
        view.findViewById<View>(R.id.map_whole).setOnClickListener { map.showWhole() }
        view.findViewById<View>(R.id.map_choose).setOnClickListener { actions.choose() }
        view.findViewById<TextView>(R.id.map_remove).setOnClickListener { actions.remove(it as TextView) }
    }

    private fun dropOwn() {
        val text = words.text.toString().trim()
        if (text.isEmpty()) return
        onMark(text)
        words.text.clear()
    }

    override fun show(state: AppState) {
        map.show(state.track, actions.unit)
        showMap()
        val all = state.track.marks.size
        val waiting = state.track.marks.count { !it.saved }
        val resources = context.resources
        view.tell(
            R.id.marks,
            listOfNotNull(
                resources.getQuantityString(R.plurals.marks, all, all).takeIf { all > 0 },
                resources.getQuantityString(R.plurals.marks_waiting, waiting, waiting).takeIf { waiting > 0 },
                context.getString(R.string.track_how).takeIf { state.track.isEmpty },
            ).joinToString(", ").ifEmpty { null },
        )
    }

    private fun showMap() {
        val now = actions.state
        val tiles = (now as? MapState.Open)?.tiles
        if (map.layer.map !== tiles) {
            map.layer.map = tiles
            map.changed()
        }
        val fault = (now as? MapState.Failed)?.fault ?: map.layer.fault
        view.tell(
            R.id.map_lacks,
            fault?.let { context.getString(FAULTS.getValue(it)) }
                ?: tiles?.takeIf { map.layer.painted?.isEmpty == true }?.let(::nothingHere),
        )
        view.findViewById<TextView>(R.id.map_says).text = when (now) {
            is MapState.Open -> map.layer.attribution
            is MapState.Failed -> ""
            MapState.Opening -> context.getString(R.string.map_opening)
            MapState.None -> context.getString(R.string.map_how)
        }
        view.see(R.id.map_choose, now is MapState.None || fault != null)
        view.see(R.id.map_remove, now !is MapState.None)
    }

    private fun nothingHere(tiles: PmTiles): String {
        val (west, south, east, north) = tiles.bounds
        return context.getString(R.string.map_nothing, south, north, west, east)
    }

    private companion object {
        val FAULTS = mapOf(
            MapFault.OTHER_FORMAT to R.string.map_other_format,
            MapFault.OTHER_VERSION to R.string.map_other_version,
            MapFault.OTHER_COMPRESSION to R.string.map_other_compression,
            MapFault.OTHER_TILES to R.string.map_other_tiles,
            MapFault.TOO_SHORT to R.string.map_too_short,
            MapFault.DAMAGED to R.string.map_damaged,
            MapFault.TOO_MUCH to R.string.map_too_much,
            MapFault.UNREADABLE to R.string.map_unreadable,
        )
    }
}
