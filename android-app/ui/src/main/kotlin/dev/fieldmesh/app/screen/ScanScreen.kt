package dev.fieldmesh.app.screen

import android.view.View
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.app.view.PreviewView
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.scan.CodeReader
import dev.fieldmesh.device.CameraException
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.catch
import kotlinx.coroutines.flow.firstOrNull
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.withContext

/** Looks through the camera for the picture that `fieldmesh keys pair` shows. */
class ScanScreen(override val view: View, onType: () -> Unit) : Screen {
    private val preview: PreviewView = view.findViewById(R.id.preview)
    private val hint: TextView = view.findViewById(R.id.scan_hint)

    init {
        view.findViewById<View>(R.id.scan_type).setOnClickListener { onType() }
    }

    override fun show(state: AppState) = Unit

    /**
     * Gives the first code or line that [shots] show; null when the camera fails, and the screen says so.
     * Pictures are searched on [worker].
     */
    suspend fun look(shots: Flow<Shot>, worker: CoroutineDispatcher): String? = shots
        .onEach(preview::show)
        .map { shot -> withContext(worker) { CodeReader.read(shot.picture) } }
        .catch { e -> if (e is CameraException) hint.setText(R.string.scan_failed) else throw e }
        .firstOrNull { text -> text != null && isWanted(text) }

    private fun isWanted(text: String): Boolean {
        val wanted = PairingCode.parse(text) != null || Pairing.parse(text) != null
        if (!wanted) hint.setText(R.string.scan_other)
        return wanted
    }
}
